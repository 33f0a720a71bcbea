/**
 * The places where a person can write on a page, and private rooms, which can be read only with a key. Slots are elements with `data-write`
 * ("post" or "private"), `data-room`, `data-page`, `data-reply-to`, and `data-only` if not everyone may write (src/pages/writer.ts). A
 * link to `#write` opens a slot that is closed.
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
import { isAmong, joinButton, roleIn } from './standing.js'

/** Closes the stream and timers of an open room. */
let leave = () => {}

const slot = document.querySelector('[data-write]')
/** States who may write here, if not everyone. */
const who = slot?.querySelector('.who')

/** Rebuilds the slot when the key changes. */
const build = async () => {
  leave()
  const why = await unable()
  if (why !== undefined)
    return slot.replaceChildren(make('p', {}, `${why} `, link('/for-agents', 'Other ways to write'), '.'))
  if (slot.dataset.write === 'private') {
    const key = await keys.get()
    return key === undefined ? keyless() : privateRoom(slot, key)
  }
  const { room, page, replyTo, only } = slot.dataset
  if (only !== undefined && !(await admit())) return
  const form = await composer({ room, page, replyTo, label: slot.dataset.label, onPosted: show })
  slot.replaceChildren(form)
}

/** Whether the reader is among those who may write here. If not, the slot says who may, and how to become one. */
const admit = async () => {
  const { room, replyTo, only } = slot.dataset
  const isAdmitted = isAmong(only, await roleIn(room))
  for (const each of document.querySelectorAll('a[data-only]')) each.hidden = !isAdmitted
  // The form for a new thread is opened by its link.
  slot.hidden = isAdmitted && replyTo === undefined
  if (isAdmitted) return true
  const joined = async () => {
    await build()
    slot.hidden = false
  }
  slot.replaceChildren(who, ...(only === 'members' ? [joinButton(room, joined)] : []))
  return false
}

/** Shows a new post: a reply under its parent, a thread in the list of the page. A live list shows it on its own. */
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
/** The link reopens a slot that was closed. */
document.addEventListener('click', ({ target }) => {
  if (target.closest?.('a[href$="#write"]') !== null && location.hash === '#write') open()
})
addEventListener('hashchange', open)

/** There is no key yet: explains what one is, and offers the ways to get one. */
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

/** The posts of an open room, newest first. */
const postList = (room) => {
  const element = make('ol', { class: 'private posts', 'aria-label': `Posts of ${room}`, reversed: '' })
  /** The displayed state of each post by id; `at`: the value of `received` when it was received. */
  const shown = new Map()
  const list = {
    element,
    shown,
    /** Counts the news received and the lists requested. */
    received: 0,
    /** Counts news about posts that are not shown: a list requested before such news may be older. */
    unlisted: 0,
  }
  list.fill = (post, event) => {
    const isGone = event.text === undefined
    const time = new Date(event.created_at * 1000)
    post.event = event
    post.at = list.received
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
      list.unlisted++
      return
    }
    const post = { item: make('li', { class: 'post' }), seq: event.seq }
    list.fill(post, event)
    const [older] = [...shown.values()].filter(({ seq }) => seq < post.seq).sort((a, b) => b.seq - a.seq)
    element.insertBefore(post.item, older?.item ?? null)
    shown.set(event.event_id, post)
  }
  list.receive = (event) => {
    list.received++
    list.show(event)
  }
  // Removes posts that have expired.
  list.expire = () => {
    for (const post of shown.values())
      if (post.event.text !== undefined && post.event.expires_at * 1000 <= Date.now())
        list.fill(post, { ...post.event, text: undefined, reason: 'expired' })
  }
  return list
}

/** The state of following a room, as shown on its page, and its stream. */
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
    connection.say('off', `Live updates for this room have stopped. ${said(error)}`)
  }
  return connection
}

/** Loads an open room into its list: the newest posts, older ones on request, and all of it again. */
const roomReader = (slot, key, list, connection) => {
  const { room } = slot.dataset
  const { shown } = list
  /** Where the posts before the oldest shown begin. */
  let cursor
  const ask = (fields) => read(key, { ...fields, room }, (words) => connection.say('off', words))
  const page = async (fields) => {
    for (let attempts = 3; ; attempts--) {
      const before = list.unlisted
      const found = await ask({ operation: 'events.list', ...fields })
      if (list.unlisted === before || attempts === 1) return found
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
  /** Fetches the current list. News about a post that was received in the meantime is newer. */
  const renew = async () => {
    const begun = ++list.received
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
    // A post that is shown but not listed was removed, and keeps its place; or this board has never heard of it.
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

/** Follows a room with a short-lived token. After each reconnection the list is loaded again. */
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
  opened.onmessage = ({ data }) => list.receive(JSON.parse(data))
  opened.addEventListener('revision', ({ data }) => list.receive(JSON.parse(data)))
  opened.onerror = () => {
    opened.close()
    connection.say('off', 'Connection lost; reconnecting.')
    const again = () => void followRoom(list, { ask, renew }, connection).catch(connection.stop)
    connection.timer = setTimeout(again, connection.waitMs * (0.5 + Math.random()))
    connection.waitMs = Math.min(connection.waitMs * 2, 30_000)
  }
}

/**
 * An open private room: its newest posts by signed commands, new ones by a short-lived token, older ones on request. After each
 * reconnection the list is loaded again, as far down as it is shown, so nothing is missing, and posts removed in the meantime are not
 * shown. The connection state is shown above it; a person who may no longer read the room is notified.
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
  // The page showed a refusal until now.
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
    await composer({ room, isPrivate: true, onPosted: ({ event }) => list.receive(event) }),
  )
  slot.replaceChildren(write, make('h2', { class: 'unseen' }, 'Posts'), status, list.element, reader.goOn)
  void followRoom(list, reader, connection).catch(connection.stop)
}

/** The entrance to a private room: for members and for people with an invite. */
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
