/**
 * Where a page is written on, and private rooms, which are read with a key alone. Slots on a page: elements with `data-write` ("post" or
 * "private"), `data-room`, `data-page`, `data-reply-to` (src/pages/writer.ts). One that is not open yet opens by a link to `#write`.
 */
import {
  announce,
  button,
  documentAt,
  keys,
  link,
  make,
  placeReply,
  Refused,
  read,
  said,
  send,
  unable,
  visible,
} from './board.js'
import { composer, keyFileField } from './composer.js'
import './me.js'

/** Ends what an open room holds: its stream, and what it waits for. */
let leave = () => {}

const slot = document.querySelector('[data-write]')

/** Everything of a slot is built anew when the key changes. */
const build = async () => {
  leave()
  const why = await unable()
  if (why !== undefined)
    return slot.replaceChildren(make('p', {}, `${why} `, link('/for-agents', 'Other ways to write'), '.'))
  if (slot.dataset.write === 'private') {
    const key = await keys.get()
    return key === undefined ? keyless() : privateRoom(slot, key)
  }
  const { room, page, replyTo } = slot.dataset
  const form = await composer({ room, page, replyTo, label: slot.dataset.label, onPosted: show })
  slot.replaceChildren(form)
}

/** Shows what was posted: a reply under its post, a thread among those of the page. A live list shows it by itself. */
const show = async ({ event_id: id }) => {
  const parent = document.getElementById(`e-${slot.dataset.replyTo}`)
  if (parent !== null) return void (await placeReply(parent, id))
  const place = document.querySelector('.content')
  const rows = document.querySelector('.threads, .content > .empty')
  if (rows === null || document.querySelector('[data-live-room]') !== null) return
  const fresh = (await documentAt(location.pathname + location.search)).querySelector('.threads')
  if (fresh === null) return
  rows.replaceWith(document.importNode(fresh, true))
  announce(place)
}

const open = () => {
  if (slot === null || (location.hash !== '#write' && slot.hidden)) return
  slot.hidden = false
  if (location.hash !== '#write') return
  slot.querySelector('textarea')?.focus()
}
/** The link to it opens it again after it was left. */
document.addEventListener('click', ({ target }) => {
  if (target.closest?.('a[href$="#write"]') !== null && location.hash === '#write') open()
})
addEventListener('hashchange', open)

/** No key yet: what one is, and the ways to have one. */
const keyless = () => {
  const after = (act) => async () => {
    await act()
    document.dispatchEvent(new Event('key-changed'))
    await build()
  }
  slot.hidden = false
  slot.replaceChildren(
    make('h2', {}, 'Read it with your key'),
    make(
      'p',
      {},
      'A private room opens with a member’s key, or by an invite for yours. A key is made in this browser and stays there: no account, no cookie. No one else has it, so no one can restore it.',
    ),
    make(
      'div',
      { class: 'actions' },
      button(
        'Make a key and save a copy',
        after(() => keys.make()),
      ),
    ),
    keyFileField(after(() => {})),
  )
}

/** Posts of an open room, newest first. */
const postList = (room) => {
  const element = make('ol', { class: 'private posts', 'aria-label': `Posts of ${room}`, reversed: '' })
  /** What is shown of each post, by its id; `at`: when it was told, counted in `told`. */
  const shown = new Map()
  const list = {
    element,
    shown,
    /** What was heard, and lists that were asked for. */
    told: 0,
    /** News of posts that are not shown: a list that was asked for before them may be older. */
    unheard: 0,
  }
  list.fill = (post, event) => {
    const isGone = event.text === undefined
    const time = new Date(event.created_at * 1000)
    post.event = event
    post.at = list.told
    post.item.replaceChildren(
      make(
        'p',
        { class: 'by' },
        make('b', {}, visible(event.author.handle ?? event.author.id.slice(0, 8))),
        ' ',
        make('time', { datetime: time.toISOString(), class: 'quiet' }, time.toLocaleString()),
      ),
      make(
        'p',
        { class: isGone ? 'text gone' : 'text', dir: 'auto' },
        visible(isGone ? `(${event.reason ?? 'gone'})` : event.text),
      ),
    )
  }
  list.show = (event) => {
    const known = shown.get(event.supersedes ?? event.event_id)
    if (known !== undefined) return list.fill(known, { ...event, created_at: known.event.created_at })
    if (event.supersedes !== undefined || event.hidden) {
      list.unheard++
      return
    }
    const post = { item: make('li', { class: 'post' }), seq: event.seq }
    list.fill(post, event)
    const [older] = [...shown.values()].filter(({ seq }) => seq < post.seq).sort((a, b) => b.seq - a.seq)
    element.insertBefore(post.item, older?.item ?? null)
    shown.set(event.event_id, post)
  }
  list.hear = (event) => {
    list.told++
    list.show(event)
  }
  // What was to be read for a time alone is gone when it is over.
  list.expire = () => {
    for (const post of shown.values())
      if (post.event.text !== undefined && post.event.expires_at * 1000 <= Date.now())
        list.fill(post, { ...post.event, text: undefined, reason: 'expired' })
  }
  return list
}

/** Whether a room is followed, as its page says it, and the stream that it is followed by. */
const connectionOf = (status) => {
  const connection = { isLeft: false, stream: undefined, timer: undefined, waitMs: 1_000 }
  connection.say = (state, words) => {
    status.dataset.state = state
    status.textContent = words
  }
  connection.leave = () => {
    connection.isLeft = true
    clearTimeout(connection.timer)
    connection.stream?.close()
  }
  connection.stop = (error) => {
    connection.leave()
    connection.say('off', `This room is no longer followed. ${said(error)}`)
  }
  return connection
}

/** Reads an open room into its list: the newest posts, older ones when they are asked for, and all of it anew. */
const roomReader = (slot, key, list, connection) => {
  const { room } = slot.dataset
  const { shown } = list
  /** Where the posts before the oldest that is shown begin. */
  let cursor
  const ask = (fields) => read(key, { ...fields, room }, (words) => connection.say('off', words))
  const page = async (fields) => {
    for (let attempts = 3; ; attempts--) {
      const before = list.unheard
      const found = await ask({ operation: 'events.list', ...fields })
      if (list.unheard === before || attempts === 1) return found
    }
  }
  const goOn = make('p', { class: 'pager' })
  const endAt = ({ events, next_cursor: next }) => {
    for (const event of events) if (!shown.has(event.event_id)) list.show(event)
    cursor = next
    goOn.hidden = next === undefined
  }
  const older = button('Older', async () => {
    const found = await page({ cursor, limit: 50 }).catch(connection.stop)
    if (found !== undefined) endAt(found)
  })
  goOn.append(older)
  /** The list as the board has it now. Where something was heard of a post meanwhile, that is newer. */
  const renew = async () => {
    const begun = ++list.told
    const isOld = (post) => post === undefined || post.at <= begun
    const oldest = Math.min(...[...shown.values()].map(({ seq }) => seq))
    const listed = new Set()
    let found
    do {
      found = await page(found === undefined ? { limit: 50 } : { cursor: found.next_cursor, limit: 200 })
      for (const event of found.events) {
        listed.add(event.event_id)
        if (isOld(shown.get(event.event_id))) list.show(event)
      }
    } while (found.next_cursor !== undefined && (found.events.at(-1)?.seq ?? Number.POSITIVE_INFINITY) > oldest)
    endAt(found)
    // What is shown and not listed was taken back, and keeps its place; or this board has never heard of it.
    for (const [id, post] of shown) {
      if (listed.has(id) || post.event.text === undefined || !isOld(post)) continue
      try {
        const { event } = await read(key, { operation: 'event.get', event_id: id })
        if (isOld(post)) list.fill(post, event)
      } catch (error) {
        if (!(error instanceof Refused)) throw error
        post.item.remove()
        shown.delete(id)
      }
    }
  }
  return { ask, goOn, renew }
}

/** Follows a room by a short-lived token. Each time the connection is there again the list is read anew. */
const followRoom = async (list, { ask, renew }, connection) => {
  const { tail } = await ask({ operation: 'room.read_token', ttl: 600 })
  if (connection.isLeft) return
  const opened = new EventSource(`${tail}&last=0`)
  connection.stream = opened
  opened.onopen = () => {
    connection.waitMs = 1_000
    const isLive = () => {
      if (opened.readyState === EventSource.OPEN) connection.say('on', 'Live: new posts appear automatically.')
    }
    isLive()
    renew().then(isLive).catch(connection.stop)
  }
  opened.onmessage = ({ data }) => list.hear(JSON.parse(data))
  opened.addEventListener('revision', ({ data }) => list.hear(JSON.parse(data)))
  opened.onerror = () => {
    opened.close()
    connection.say('off', 'Connection lost; reconnecting.')
    const again = () => void followRoom(list, { ask, renew }, connection).catch(connection.stop)
    connection.timer = setTimeout(again, connection.waitMs * (0.5 + Math.random()))
    connection.waitMs = Math.min(connection.waitMs * 2, 30_000)
  }
}

/**
 * A private room, open: its newest posts by signed commands, what comes by a short-lived token, older ones when they are asked for.
 * Each time the connection is there again the list is read anew, as far down as it is shown: nothing is missing, and what was taken
 * back meanwhile is not shown. Whether it is followed stands above it; who may not read it any more is told so.
 */
const openRoom = async (slot, key) => {
  const { room } = slot.dataset
  const status = make('p', { class: 'live', role: 'status' })
  const list = postList(room)
  const connection = connectionOf(status)
  const reader = roomReader(slot, key, list, connection)
  await reader.renew()
  const clock = setInterval(list.expire, 1_000)
  leave = () => {
    connection.leave()
    clearInterval(clock)
  }
  // The page was a refusal until now.
  document.title = `${room} · ${document.querySelector('.wordmark').textContent}`
  document
    .querySelector('.head')
    ?.replaceChildren(
      make('p', { class: 'crumbs' }, link('/rooms', 'Rooms'), ' / private'),
      make('h1', {}, room),
      make('p', {}, link(`/account/rooms?room=${room}`, 'People and invites')),
    )
  slot.closest('.content')?.replaceChildren(slot)
  slot.className = ''
  slot.hidden = false
  slot.setAttribute('aria-label', `Private room ${room}`)
  const write = make(
    'div',
    { class: 'writer' },
    await composer({ room, isPrivate: true, onPosted: ({ event }) => list.hear(event) }),
  )
  slot.replaceChildren(write, make('h2', { class: 'unseen' }, 'Posts'), status, list.element, reader.goOn)
  void followRoom(list, reader, connection).catch(connection.stop)
}

/** The door of a private room: for members, and for who was invited. */
const privateRoom = async (slot, key) => {
  const { room } = slot.dataset
  slot.className = 'writer'
  slot.hidden = false
  const problem = make('p', { role: 'alert', class: 'problem' })
  const open = () => openRoom(slot, key)
  const code = make('input', {
    'aria-label': 'Invite',
    placeholder: `${room}.…`,
    autocomplete: 'off',
    maxlength: '120',
  })
  const attempt = (act) => async () => {
    problem.textContent = ''
    try {
      await act()
    } catch (error) {
      problem.textContent = said(error)
    }
  }
  const join = attempt(async () => {
    const data = JSON.stringify({ schema: 1, code: code.value.trim() })
    await send(key, { operation: 'room.invite.accept', data })
    await open()
  })
  slot.replaceChildren(
    make('h2', {}, 'Are you a member?'),
    make('div', { class: 'actions' }, button('Read it with my key', attempt(open))),
    make('p', {}, 'Or join with an invite:'),
    make('div', { class: 'actions' }, code, button('Join', join)),
    problem,
  )
}

if (slot !== null) void build().then(open)
