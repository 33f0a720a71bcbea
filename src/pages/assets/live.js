/**
 * A live list of a room: posts arrive by server-sent events, each is shown once and in order, and posts that are removed, restored, or
 * edited change in place. Nothing is lost or duplicated when the connection is lost or the board restarts:
 *
 * - The stream is opened after the newest known post (`?since=`), so that nothing between the page and the stream is missed.
 * - Posts are identified by id. One that is already shown is not shown again, and each is placed by its number in the room.
 * - After each connection, the corrections since the last one are read from /api/changes, or the whole list if there are many.
 * - If the board does not know the newest post (it was restored from a backup), the whole list is fetched once more.
 *
 * A post that arrived looks the same as after a reload. Plain texts are built here from text nodes only, with links as on the server
 * (pieces/text.ts). Some posts only the board can render: Markdown, characters that hide, reorder, or pile up, and the mark of an edit.
 * These are requested as a document in which nothing runs (`/e/ID/line`), and its elements are moved here. Until then the text is shown as
 * written.
 */

import { announce, documentAt, encoder, isByModerator, link, make, person, time } from './board.js'

const list = document.querySelector('[data-live-room]')
const status = document.getElementById('live')
const { liveRoom: room, livePage: onlyPage } = list.dataset
/** As in src/pages/post.ts. */
const listedChars = 700
const shownMax = Number(list.dataset.liveMax ?? 500)
/** Number of the newest public change that the page reflects. */
let change
/** Id of the newest known post, shown or not. */
let newest
const known = new Set()
/** Initializes the state from a list rendered by the board. */
const begin = ({ dataset }) => {
  change = Number(dataset.liveChange ?? -1)
  newest = dataset.liveNewest ?? ''
  known.clear()
  for (const post of list.querySelectorAll('[data-id]')) known.add(post.dataset.id)
}
begin(list)
let arrived = 0
let waitMs = 1_000

/** Adds a tooltip. */
const titled = (element, title) => {
  element.title = title
  return element
}

const odd = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\u{E0000}-\u{E0FFF}\u115F\u1160\u3164\uFFA0\u2800]/gu
/** Appends text, with characters that hide or reorder it shown by their code points. */
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
/** The beginning of a text on one line, without Markdown syntax; as in pieces/text.ts. */
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

const textOf = (event) => {
  const { text, reason, hidden, event_id: id } = event
  if (hidden) {
    const gone = make('p', { class: 'text gone' })
    const why = reason ?? 'removed'
    const what = isByModerator(event) ? 'Hidden by a moderator' : 'The text is gone'
    plain(gone, `${what}: ${why}${/[.!?…]$/.test(why) ? ' ' : '. '}`)
    gone.append(isByModerator(event) ? link('/moderation', 'Moderation log') : 'Its place, author and proof remain.')
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

/** What a post answers: by whom, and how that begins, if it is on this page. */
const contextOf = ({ reply_to: parent, to, to_id: toId = to }) => {
  const contexts = []
  if (parent !== undefined) {
    const shown = document.getElementById(`e-${parent}`)
    const name = shown?.querySelector('.person b, .person .key').textContent
    const text = latest.get(shown)?.text ?? shown?.querySelector('.text:not(.gone)')?.textContent
    const words =
      shown === null
        ? parent.slice(0, 8)
        : make(
            'span',
            {},
            `${name}: `,
            make('bdi', {}, text === undefined ? '(gone)' : beginning(text, latest.get(shown))),
          )
    contexts.push(make('p', { class: 'context' }, 'in reply to ', link(`/e/${parent}`, words)))
  }
  if (to !== undefined) {
    const name = link(`/i/${toId}`, to.startsWith('@') ? to : to.slice(0, 8))
    contexts.push(make('p', { class: 'context' }, 'for ', name))
  }
  return contexts
}

// As in src/format/imported.ts and src/pages/post.ts.
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
/** The latest state of each post: an answer that arrives after newer news is dropped. */
const latest = new WeakMap()

/** Replaces the text and files of a post with those of the event. */
const fill = (post, event) => {
  const put = (parts) => {
    for (const old of post.querySelectorAll(bodyParts)) old.remove()
    post.querySelector(':scope > .under').before(...parts)
  }
  latest.set(post, event)
  put([...textOf(event), ...filesOf(event)])
  if (event.hidden || !isLaidOutThere(event)) return
  const arrange = (laidOut) => {
    const line = laidOut.getElementById(post.id)
    if (line === null || latest.get(post) !== event) return
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

/** Updates an event that is shown. @param event as it is now */
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
  // A post that was removed before it was shown is not listed.
  if (event.hidden || (onlyPage !== undefined && event.page !== onlyPage)) return
  const post = postOf(event)
  list.querySelector('.empty')?.remove()
  const older = Array.prototype.find.call(list.children, ({ dataset }) => Number(dataset.seq) < event.seq)
  list.insertBefore(post, older ?? null)
  announce(post)
  // The oldest are no longer shown, except for one under which the reader is writing.
  for (const old of [...list.children].slice(shownMax)) if (old.querySelector('.in-place') === null) old.remove()
  arrived++
  say('on', `Live. ${arrived} new since you opened this page.`)
}

const json = async (path) => (await (await fetch(path)).json()) ?? {}

/** Applies corrections made while disconnected: up to three pages of them, otherwise the whole list again. */
const catchUp = async () => {
  for (let pages = 0; pages < 3; pages++) {
    const { ok, data } = await json(`/api/changes?after=${change}&limit=200`)
    if (!ok) break
    for (const { events } of data.changes) {
      // Shows the newest version that still has a text; otherwise its removal.
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

/** Replaces a list that the board does not recognize with the current one. */
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
      // A board that answers, but not with a stream, may not know the post to resume after.
      if (isAnswered && newest !== '' && (await fetch(`/api/events/${newest}`)).status === 400) await renew()
    } catch {
      // The board is unreachable, so the known state stays valid.
    }
    if (stream !== opened || document.visibilityState === 'hidden') return
    timer = setTimeout(connect, waitMs * (0.5 + Math.random()))
    waitMs = Math.min(waitMs * 2, 30_000)
  }
}

// A browser keeps few connections to one host, so a hidden page closes its connection, and resumes when it is visible again.
document.addEventListener('visibilitychange', () => {
  clearTimeout(timer)
  stream.close()
  if (document.visibilityState === 'visible') connect()
  else say('off', 'Paused while the page is hidden.')
})

// Remove posts that have expired.
setInterval(() => {
  for (const post of list.querySelectorAll('[data-expires]')) {
    if (Number(post.dataset.expires) * 1000 > Date.now()) continue
    delete post.dataset.expires
    revise({ event_id: post.dataset.id, hidden: true, reason: 'expired' })
  }
}, 1_000)

connect()
