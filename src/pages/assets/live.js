/**
 * A room that goes on while it is read: posts arrive by server-sent events, each is shown once and in order, and what is taken
 * back, restored or edited changes in its place. Nothing is lost or doubled over a lost connection or a restart of the board:
 *
 * - The stream is opened behind the newest post that is shown (`?since=`), so that nothing between the page and the stream is missed.
 * - Each post is known by its id. One that is shown already is not shown again.
 * - After each connection the corrections since the last one are read from /api/changes, or the list anew if they are many.
 *
 * Texts become text nodes only; addresses become links as on the server (pieces/text.ts).
 */

const list = document.querySelector('[data-live-room]')
const status = document.getElementById('live')
const { liveRoom: room, livePage: onlyPage } = list.dataset
/** As in pieces/post.ts. */
const listedChars = 700
const shownMax = Number(list.dataset.liveMax ?? 500)
/** Number of the newest public change that the page knows of. */
let change = Number(list.dataset.liveChange ?? -1)
/** Id of the newest post known, shown or not. */
let newest = list.dataset.liveNewest ?? ''
const known = new Set([...list.querySelectorAll('[data-id]')].map(({ dataset }) => dataset.id))
let arrived = 0
let waitMs = 1_000

const make = (name, className, text) => {
  const made = document.createElement(name)
  if (className !== '') made.className = className
  if (text !== undefined) made.textContent = text
  return made
}
const link = (href, text, className = '') => {
  const made = make('a', className, text)
  made.setAttribute('href', href)
  return made
}

const svgSpace = 'http://www.w3.org/2000/svg'
/** The same cells as in pictures/seal.ts. */
const seal = (id) => {
  const svg = document.createElementNS(svgSpace, 'svg')
  svg.setAttribute('class', `seal hue${Number.parseInt(id.slice(5, 6), 16) || 0}`)
  svg.setAttribute('viewBox', '-1 -1 7 7')
  svg.setAttribute('aria-hidden', 'true')
  const bits = Number.parseInt(id.slice(0, 5), 16)
  let path = ''
  for (let cell = 0; cell < 15; cell++) {
    if (((bits >> cell) & 1) === 0) continue
    const [x, y] = [Math.floor(cell / 5), cell % 5]
    path += `M${x} ${y}h1v1h-1z${x < 2 ? `M${4 - x} ${y}h1v1h-1z` : ''}`
  }
  const cells = document.createElementNS(svgSpace, 'path')
  cells.setAttribute('d', path || 'M2 2h1v1h-1z')
  svg.append(cells)
  return svg
}

const odd = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\u{E0000}-\u{E0FFF}\u115F\u1160\u3164\uFFA0\u2800]/gu
/** Text with what hides or turns it shown by its number. */
const plain = (parent, text) => {
  let done = 0
  for (const { 0: char, index } of text.matchAll(odd)) {
    if (char === '\n' || char === '\t' || char === '\u200d' || char === '\u200c') continue
    const number = char.codePointAt(0).toString(16).toUpperCase().padStart(4, '0')
    parent.append(text.slice(done, index), make('span', 'odd', `U+${number}`))
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

const time = (seconds) => {
  const iso = new Date(seconds * 1000).toISOString()
  const made = make('time', '', `${iso.slice(0, 16).replace('T', ' ')} UTC`)
  made.dateTime = iso.replace('.000Z', 'Z')
  return made
}

const textOf = ({ text, reason, hidden, event_id: id }) => {
  if (hidden) {
    const gone = make('p', 'text gone')
    plain(gone, `The text is gone: ${reason ?? 'removed'}. Its place, author and proof stay.`)
    return [gone]
  }
  const body = make('p', 'text')
  body.dir = 'auto'
  textInto(body, text.slice(0, listedChars))
  if (text.length <= listedChars) return [body]
  const more = make('p', 'more')
  more.append(link(`/e/${id}`, 'Read all of it'))
  return [body, more]
}

const filesOf = ({ attachments = [] }) => {
  if (attachments.length === 0) return []
  const files = make('ul', 'files')
  for (const { id, filename, media_type: type, gone } of attachments) {
    const item = make('li', '')
    if (gone === undefined) {
      const file = link(`/a/${id}`)
      file.download = ''
      plain(file, filename ?? id.slice(0, 8))
      item.append(file, ' ')
      plain(item, type ?? 'file')
    } else item.append('a file that was deleted')
    files.append(item)
  }
  return [files]
}

const postOf = (event) => {
  const { event_id: id, author, seq, created_at: at, reply_to: parent, kind, page } = event
  const post = make('article', 'post fresh')
  post.id = `e-${id}`
  post.dataset.id = id
  post.dataset.seq = seq
  const by = make('div', 'by')
  const person = link(`/i/${author.id}`, undefined, 'person')
  const name = make('span', '')
  if (author.handle !== undefined) name.append(make('b', '', `@${author.handle}`), ' ')
  name.append(make('span', 'key', author.id.slice(0, 8)))
  person.append(seal(author.id), name)
  const when = make('span', 'at')
  const permalink = link(`/e/${id}`)
  permalink.append(time(at))
  when.append(permalink)
  by.append(person, when)
  if (page !== 'main' && onlyPage === undefined) by.append(link(`/room/${event.room}?page=${page}`, page, 'place'))
  if (kind !== 'note') by.append(make('span', 'tag', kind))
  post.append(by)
  if (parent !== undefined) {
    const context = make('p', 'context', 'in reply to ')
    const shown = document.getElementById(`e-${parent}`)
    const words =
      shown === null
        ? parent.slice(0, 8)
        : `${shown.querySelector('.person').textContent}: ${shown.querySelector('.text').textContent.slice(0, 80)}`
    context.append(link(`/e/${parent}`, words))
    post.append(context)
  }
  const under = make('div', 'under')
  under.append(link(`/e/${id}`, 'thread', 'quiet'))
  if (event.log.state === 'included') under.append(link(`/e/${id}/proof`, 'signed, in the log', 'quiet proof'))
  if (event.expires_at !== undefined) post.dataset.expires = event.expires_at
  post.append(...textOf(event), ...filesOf(event), under)
  return post
}

const say = (state, words) => {
  status.dataset.state = state
  status.textContent = words
}

/** An event that is shown is no longer what it was. @param event as it is now */
const revise = (event) => {
  const shown = document.getElementById(`e-${event.supersedes ?? event.event_id}`)
  if (shown === null || !list.contains(shown)) return
  for (const old of shown.querySelectorAll(':scope > .text, :scope > .more, :scope > .files')) old.remove()
  shown.querySelector(':scope > .under').before(...textOf(event), ...filesOf(event))
  shown.classList.toggle('gone', event.hidden)
}

const add = (event) => {
  if (event.supersedes !== undefined) {
    newest = event.event_id
    return revise(event)
  }
  newest = event.event_id
  if (known.has(event.event_id)) return
  known.add(event.event_id)
  if (onlyPage !== undefined && event.page !== onlyPage) return
  const post = postOf(event)
  list.querySelector('.empty')?.remove()
  list.prepend(post)
  post.dispatchEvent(new Event('post-added', { bubbles: true }))
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

/** Times in a row that the stream did not open. */
let failures = 0
let stream
let timer

const connect = () => {
  clearTimeout(timer)
  // The post to go on behind may be one that this board does not know any more: then the newest are compared with what is shown.
  const from = newest === '' || failures >= 3 ? 'last=200' : `since=${newest}`
  stream = new EventSource(`/tail/${room}?${from}`)
  stream.onopen = () => {
    waitMs = 1_000
    failures = 0
    say(
      'on',
      arrived === 0 ? 'Live: new posts appear by themselves.' : `Live. ${arrived} new since you opened this page.`,
    )
    catchUp().catch(() => {})
  }
  stream.onmessage = ({ data }) => add(JSON.parse(data))
  stream.addEventListener('revision', ({ data }) => revise(JSON.parse(data)))
  stream.onerror = () => {
    stream.close()
    failures++
    say('off', 'The connection is gone; trying again.')
    timer = setTimeout(connect, waitMs * (0.5 + Math.random()))
    waitMs = Math.min(waitMs * 2, 30_000)
  }
}

// A browser keeps few connections to one place: a page that nobody sees gives its own back, and goes on where it was.
document.addEventListener('visibilitychange', () => {
  clearTimeout(timer)
  stream.close()
  if (document.visibilityState === 'visible') connect()
  else say('off', 'Paused while nobody looks.')
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
