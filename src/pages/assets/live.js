/**
 * A room that goes on while it is read: posts arrive by server-sent events, each is shown once and in order, and what is taken
 * back, restored or edited changes in its place. Nothing is lost or doubled over a lost connection or a restart of the board:
 *
 * - The stream is opened behind the newest post that is known (`?since=`), so that nothing between the page and the stream is missed.
 * - Each post is known by its id. One that is shown already is not shown again, and each stands at its number in the room.
 * - After each connection the corrections since the last one are read from /api/changes, or the list anew if they are many.
 * - Where the board does not know the newest post (a backup was put back), the whole list is fetched once more.
 *
 * A post that arrived looks as it does when the page is loaded anew. Plain texts are built here, as text nodes alone, with links as
 * on the server (pieces/text.ts). What only the board lays out (Markdown, letters that hide, turn or pile up, the mark of an edit)
 * is asked for as a document in which nothing runs (`/e/ID/line`), and its elements are moved; until then the text stands as written.
 */

import { announce, documentAt, encoder, link, make, person, time } from './board.js'

const list = document.querySelector('[data-live-room]')
const status = document.getElementById('live')
const { liveRoom: room, livePage: onlyPage } = list.dataset
/** As in src/pages/post.ts. */
const listedChars = 700
const shownMax = Number(list.dataset.liveMax ?? 500)
/** Number of the newest public change that the page knows of. */
let change
/** Id of the newest post known, shown or not. */
let newest
const known = new Set()
/** Takes the list as the board wrote it. */
const begin = ({ dataset }) => {
  change = Number(dataset.liveChange ?? -1)
  newest = dataset.liveNewest ?? ''
  known.clear()
  for (const post of list.querySelectorAll('[data-id]')) known.add(post.dataset.id)
}
begin(list)
let arrived = 0
let waitMs = 1_000

/** With what the pointer is told. */
const titled = (element, title) => {
  element.title = title
  return element
}

const odd = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\u{E0000}-\u{E0FFF}\u115F\u1160\u3164\uFFA0\u2800]/gu
/** Text with what hides or turns it shown by its number. */
const plain = (parent, text) => {
  let done = 0
  for (const { 0: char, index } of text.matchAll(odd)) {
    if (char === '\n' || char === '\t' || char === '\u200d' || char === '\u200c') continue
    const number = char.codePointAt(0).toString(16).toUpperCase().padStart(4, '0')
    parent.append(text.slice(done, index), make('span', { class: 'odd' }, `U+${number}`))
    done = index + char.length
  }
  parent.append(text.slice(done))
}

const links =
  /\bhttps?:\/\/[^\s<>"'`\p{Cc}\p{Cf}]{1,2000}|(?<![\p{L}\p{N}_@/.-])@([a-z0-9][a-z0-9_-]{1,31})(?![\p{L}\p{N}_-])/gu
const withoutTrailing = (found) => {
  let end = found.length
  while (end > 0 && '.,;:!?…)]}’”'.includes(found[end - 1])) end--
  const cut = found.slice(0, end)
  return found[end] === ')' && cut.split('(').length > cut.split(')').length ? `${cut})` : cut
}
const textInto = (parent, text) => {
  let done = 0
  for (const { 0: found, 1: handle, index } of text.matchAll(links)) {
    const address = handle === undefined ? withoutTrailing(found) : found
    plain(parent, text.slice(done, index))
    done = index + address.length
    if (handle !== undefined) parent.append(link(`/i/${handle}`, found, 'mention'))
    else if (URL.canParse(address) && new URL(address).username === '') {
      const made = link(new URL(address).href, address)
      made.rel = 'nofollow ugc noopener noreferrer'
      parent.append(made)
    } else parent.append(address)
  }
  plain(parent, text.slice(done))
}

/** As in pieces/time.ts. */
const bytes = (count) => {
  if (count < 1_000) return `${count} ${count === 1 ? 'byte' : 'bytes'}`
  const [size, unit] = [
    [1e9, 'GB'],
    [1e6, 'MB'],
    [1e3, 'kB'],
  ].find(([least]) => count >= least)
  return `${(count / size).toFixed(count / size < 10 ? 1 : 0)} ${unit}`
}
/** How a text begins, on one line and without the marks of Markdown; as in pieces/text.ts. */
const beginning = (text, { format } = {}) => {
  const words =
    format === 'markdown'
      ? text
          .slice(0, 240)
          .replace(/!?\[([^\]]*)\]\([^)]*\)/g, '$1')
          .replace(/^(#{1,6}|>|[-*+]|\d+\.)\s+/gm, '')
          .replace(/[*_`~]{1,3}(?=\S)|(?<=\S)[*_`~]{1,3}/g, '')
      : text
  const letters = [...words.replace(/\s+/gu, ' ').trim()]
  return letters.length <= 80 ? letters.join('') : `${letters.slice(0, 79).join('')}…`
}

const textOf = ({ text, reason, hidden, event_id: id }) => {
  if (hidden) {
    const gone = make('p', { class: 'text gone' })
    const why = reason ?? 'removed'
    plain(gone, `The text is gone: ${why}${/[.!?…]$/.test(why) ? '' : '.'} Its place, author and proof remain.`)
    return [gone]
  }
  const body = make('p', { class: 'text', dir: 'auto' })
  textInto(body, text.slice(0, listedChars).replace(/[\ud800-\udbff]$/, ''))
  if (text.length <= listedChars) return [body]
  const whole = link(`/e/${id}`, `Read the full text (${bytes(encoder.encode(text).length)})`)
  return [body, make('p', { class: 'more' }, whole)]
}

const filesOf = ({ attachments = [] }) => {
  if (attachments.length === 0) return []
  const files = make('ul', { class: 'files', 'aria-label': 'attachments' })
  for (const { id, filename, media_type: type, size, gone, reason = '' } of attachments) {
    const item = make('li', gone === undefined ? {} : { class: 'quiet' })
    if (gone === undefined) {
      const file = make('a', { href: `/a/${id}`, download: '' })
      plain(file, filename ?? id.slice(0, 8))
      const about = make('span', { class: 'quiet' })
      plain(about, `${type ?? 'file'}, ${bytes(size)}`)
      item.append(file, ' ', about)
    } else plain(item, `a file that was deleted${reason === '' ? '' : `: ${reason}`}`)
    files.append(item)
  }
  return [files]
}

/** What it answers: by whom, and how that begins, where it is on this page. */
const contextOf = ({ reply_to: parent, to, to_id: toId = to }) => {
  const contexts = []
  if (parent !== undefined) {
    const shown = document.getElementById(`e-${parent}`)
    const name = shown?.querySelector('.person b, .person .key').textContent
    const text = told.get(shown)?.text ?? shown?.querySelector('.text:not(.gone)')?.textContent
    const words =
      shown === null
        ? parent.slice(0, 8)
        : make('span', {}, `${name}: ${text === undefined ? '(gone)' : beginning(text, told.get(shown))}`)
    contexts.push(make('p', { class: 'context' }, 'in reply to ', link(`/e/${parent}`, words)))
  }
  if (to !== undefined) {
    const name = link(`/i/${toId}`, to.startsWith('@') ? to : to.slice(0, 8))
    contexts.push(make('p', { class: 'context' }, 'for ', name))
  }
  return contexts
}

// As src/format/imported.ts and src/pages/post.ts write them.
const importedText = ({ author, at }) =>
  `imported: ${author}${at === undefined ? '' : `, ${new Date(at * 1000).toISOString().slice(0, 10)}`}`
const claimOf = ({ system, id }) => `as its importer claims: ${system} ${id}`

const byOf = ({ event_id: id, author, created_at: at, expires_at: until, kind, page, room: place, source, hidden }) => {
  const permalink = titled(link(`/e/${id}`, time(at)), 'link to this post')
  const by = make('div', { class: 'by' }, person(author), make('span', { class: 'at' }, permalink))
  if (page !== 'main' && onlyPage === undefined)
    by.append(link(`/room/${place}?page=${encodeURIComponent(page)}`, page, 'place'))
  if (kind !== 'note') by.append(make('span', { class: 'tag' }, kind))
  if (source !== undefined)
    by.append(titled(make('span', { class: 'quiet imported' }, importedText(source)), claimOf(source)))
  if (until !== undefined && !hidden) by.append(make('span', { class: 'quiet' }, 'until ', time(until)))
  return by
}

const postOf = (event) => {
  const { event_id: id, seq, log, expires_at: until, hidden } = event
  const under = make('div', { class: 'under' }, link(`/e/${id}`, 'thread', 'quiet'))
  if (log.state === 'included') {
    const proof = link(`/e/${id}/proof`, 'signed, in the log', 'quiet proof')
    under.append(titled(proof, `leaf ${log.index} of the public log: verify it yourself`))
  }
  const post = make('article', {
    class: hidden ? 'post gone fresh' : 'post fresh',
    id: `e-${id}`,
    'data-id': id,
    'data-seq': seq,
    'data-room': event.room,
    ...(until === undefined || hidden ? {} : { 'data-expires': until }),
  })
  post.append(byOf(event), ...contextOf(event), under)
  fill(post, event)
  return post
}

const bodyParts = ':scope > :is(.text, .more, .files)'
/** What each post was last told to be: an answer that comes later than the next news of it is dropped. */
const told = new WeakMap()

/** Puts text and files of the event into its post, in place of those of before. */
const fill = (post, event) => {
  const put = (parts) => {
    for (const old of post.querySelectorAll(bodyParts)) old.remove()
    post.querySelector(':scope > .under').before(...parts)
  }
  told.set(post, event)
  put([...textOf(event), ...filesOf(event)])
  if (event.hidden || !isLaidOutThere(event)) return
  const arrange = (laidOut) => {
    const line = laidOut.getElementById(post.id)
    if (line === null || told.get(post) !== event) return
    const by = document.importNode(line.querySelector('.by'), true)
    if (onlyPage !== undefined) by.querySelector('.place')?.remove()
    post.querySelector(':scope > .by').replaceWith(by)
    post.querySelector(':scope > .under > .proof')?.replaceWith(document.importNode(line.querySelector('.proof'), true))
    put([...line.querySelectorAll(bodyParts)].map((part) => document.importNode(part, true)))
    announce(post)
  }
  documentAt(`/e/${post.dataset.id}/line`).then(arrange, () => {})
}

const isLaidOutThere = ({ text, format, supersedes, versions }) =>
  format === 'markdown' ||
  supersedes !== undefined ||
  versions !== undefined ||
  text.replaceAll(/[\n\t\u200d]/g, '').search(odd) >= 0 ||
  /\p{M}{7}/u.test(text)

const say = (state, words) => {
  status.dataset.state = state
  status.textContent = words
}

/** An event that is shown is no longer what it was. @param event as it is now */
const revise = (event) => {
  const shown = document.getElementById(`e-${event.supersedes ?? event.event_id}`)
  if (shown === null || !list.contains(shown)) return
  shown.classList.toggle('gone', event.hidden)
  fill(shown, event)
}

const add = (event) => {
  newest = event.event_id
  if (event.supersedes !== undefined) return revise(event)
  if (known.has(event.event_id)) return
  known.add(event.event_id)
  // What was taken back before it was shown is in no list.
  if (event.hidden || (onlyPage !== undefined && event.page !== onlyPage)) return
  const post = postOf(event)
  list.querySelector('.empty')?.remove()
  const older = Array.prototype.find.call(list.children, ({ dataset }) => Number(dataset.seq) < event.seq)
  list.insertBefore(post, older ?? null)
  announce(post)
  while (list.children.length > shownMax) list.lastElementChild.remove()
  arrived++
  say('on', `Live. ${arrived} new since you opened this page.`)
}

const json = async (path) => (await (await fetch(path)).json()) ?? {}

/** Corrections that were made while nobody listened: a few pages of them, or else the list itself once more. */
const catchUp = async () => {
  for (let pages = 0; pages < 3; pages++) {
    const { ok, data } = await json(`/api/changes?after=${change}&limit=200`)
    if (!ok) break
    for (const { events } of data.changes) {
      // The newest version that still has a text is what is shown; else the place.
      revise(events.findLast(({ hidden }) => !hidden) ?? events[0])
    }
    change = data.after
    if (!data.has_more) return
  }
  change = (await json('/api/changes?after=-1')).data.after
  const { data } = await json(`/api/events?room=${room}&limit=100`)
  const listed = new Set(data.events.map(({ event_id: id }) => id))
  for (const event of data.events) revise(event)
  const oldest = data.has_more ? (data.events.at(-1)?.seq ?? 0) : 0
  for (const { dataset } of list.querySelectorAll('[data-id]')) {
    if (Number(dataset.seq) < oldest || listed.has(dataset.id)) continue
    const found = await json(`/api/events/${dataset.id}`)
    if (found.ok) revise(found.data.event)
  }
}

/** The list as the board shows it now, in place of one that it knows nothing of. */
const renew = async () => {
  const fresh = (await documentAt(location.pathname + location.search)).querySelector('[data-live-room]')
  list.replaceChildren(...[...fresh.children].map((post) => document.importNode(post, true)))
  begin(fresh)
  for (const post of list.querySelectorAll('[data-id]')) announce(post)
}

let stream
let timer

const connect = () => {
  clearTimeout(timer)
  const opened = new EventSource(`/tail/${room}?${newest === '' ? 'last=200' : `since=${newest}`}`)
  stream = opened
  opened.onopen = () => {
    waitMs = 1_000
    say(
      'on',
      arrived === 0 ? 'Live: new posts appear automatically.' : `Live. ${arrived} new since you opened this page.`,
    )
    correct()
  }
  const correct = () => {
    const again = () => opened.readyState === EventSource.OPEN && correct()
    catchUp().catch(() => setTimeout(again, 10_000))
  }
  opened.onmessage = ({ data }) => add(JSON.parse(data))
  opened.addEventListener('revision', ({ data }) => revise(JSON.parse(data)))
  opened.onerror = async () => {
    const isAnswered = opened.readyState === EventSource.CLOSED
    opened.close()
    say('off', 'Connection lost; reconnecting.')
    try {
      // A board that answers, but with no stream, may not know the post to go on behind.
      if (isAnswered && newest !== '' && (await fetch(`/api/events/${newest}`)).status === 400) await renew()
    } catch {
      // It is not there at all: what is known stays good.
    }
    if (stream !== opened || document.visibilityState === 'hidden') return
    timer = setTimeout(connect, waitMs * (0.5 + Math.random()))
    waitMs = Math.min(waitMs * 2, 30_000)
  }
}

// A browser keeps few connections to one place: a page that nobody sees gives its own back, and goes on where it was.
document.addEventListener('visibilitychange', () => {
  clearTimeout(timer)
  stream.close()
  if (document.visibilityState === 'visible') connect()
  else say('off', 'Paused while the page is hidden.')
})

// What was to be read for a time alone is gone when it is over.
setInterval(() => {
  for (const post of list.querySelectorAll('[data-expires]')) {
    if (Number(post.dataset.expires) * 1000 > Date.now()) continue
    delete post.dataset.expires
    revise({ event_id: post.dataset.id, hidden: true, reason: 'expired' })
  }
}, 1_000)

connect()
