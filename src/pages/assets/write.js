/**
 * The places where a person can write on a page, and private rooms, which can be read only with a key. Slots are elements with `data-write`
 * ("post" or "private"), `data-room`, `data-page`, `data-reply-to`, and `data-only` if not everyone may write (src/pages/writer.ts). A
 * link to `#write` opens a slot that is closed.
 */
import {
  announce,
  beginning,
  button,
  focusOn,
  fromBase64url,
  isByModerator,
  isConversation,
  keys,
  link,
  make,
  nameOf,
  person,
  placeReply,
  quiet,
  Refused,
  read,
  readAll,
  rendered,
  renewList,
  said,
  save,
  send,
  setTitle,
  soon,
  time,
  unable,
  visible,
} from './board.js'
import { announceKey, composer, keyFileField, useKey } from './composer.js'
import { me } from './me.js'
import { note, takeBack, tell, versionOf, withReason, writeUnder } from './posts.js'
import { follow, isAmong, joinButton, roleIn } from './standing.js'

/** Closes the stream and timers of an open room. */
let leave = () => {}

const slot = document.querySelector('[data-write]')
/** States who may write here, if not everyone. */
const who = slot?.querySelector('.who')

/** The key that the entrance to a private room was built for. */
let builtFor

const build = async () => {
  leave()
  const why = await unable()
  if (why !== undefined)
    return slot.replaceChildren(make('p', {}, `${why} `, link('/for-agents', 'Other ways to write'), '.'))
  if (slot.dataset.write === 'private') {
    const key = await keys.get()
    builtFor = key?.publicKey
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
  const rows = document.querySelector('.threads, .content > .empty')
  if (rows !== null && document.querySelector('[data-live-room]') === null) await renewList('.threads')
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

/** A private room closes when its key is forgotten. A form for a public post follows the key on its own. */
if (slot?.dataset.write === 'private')
  document.addEventListener('key-changed', async () => {
    if ((await keys.get())?.publicKey === builtFor) return
    const hadFocus = slot.contains(document.activeElement)
    await build()
    if (hadFocus) focusOn(slot)
  })

/** There is no key yet: explains what one is, and offers the ways to get one. */
const keyless = () => {
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
      button('Make a key and save a copy', () => keys.make().then(announceKey)),
    ),
    keyFileField(useKey),
  )
}

/** Files of a private post have no public address: the key reads them, and the browser saves them. */
const filesOf = (key, attachments = []) => {
  const fileOf = ({ id, filename, media_type: type = 'file', size, gone }) => {
    if (gone !== undefined) return make('li', { class: 'quiet' }, 'a file that was deleted')
    const name = filename ?? id.slice(0, 8)
    const status = make('span', { class: 'problem', role: 'alert' })
    const download = async () => {
      try {
        status.textContent = ''
        const { data } = await read(key, { operation: 'blob.get', target: id })
        save(fromBase64url(data), name, 'application/octet-stream')
      } catch (error) {
        status.textContent = said(error)
      }
    }
    const about = make('span', { class: 'quiet' }, visible(`${type}, ${size.toLocaleString('en-US')} bytes`))
    return make('li', {}, button(visible(name), download), ' ', about, ' ', status)
  }
  return attachments.length === 0
    ? []
    : [make('ul', { class: 'files', 'aria-label': 'attachments' }, ...attachments.map(fileOf))]
}

/** Markdown is laid out by the board, one text after the other. Until then, or if the board does not answer, it is shown as written. */
let laidOut = Promise.resolve()
const layOut = (text, place) => {
  const lay = async () => {
    if (place.parentNode !== null) place.replaceWith(...(await rendered({ text, format: 'markdown' })))
  }
  laidOut = laidOut.then(lay).catch(() => {})
}

const goneWords = (event) => {
  const { reason = 'gone' } = event
  return isByModerator(event) ? `Hidden by a moderator: ${reason}` : `(${reason})`
}

/** What a post answers, and how that begins, if it is shown. */
const contextOf = ({ reply_to: parent }, shown) => {
  if (parent === undefined) return []
  const answered = shown.get(parent)?.event
  const words =
    answered === undefined ? 'an older post' : `${nameOf(answered.author)}: ${beginning(answered.text ?? '(gone)')}`
  return [make('p', { class: 'context' }, 'in reply to ', make('bdi', {}, words))]
}

/** What the reader may do with a post of an open room. */
const actsOn = (list, post, { room, key, own, isModerator, mayReply, mayEdit }) => {
  const { id, item, event } = post
  const isGone = event.text === undefined
  const isOwn = event.author.id === own
  const receive = (shown) => (answer) => {
    list.receive(answer.event)
    return shown ?? list.shown.get(answer.event_id).item
  }
  const under = (options, shown) => writeUnder(item, { ...options, room, isPrivate: true }, receive(shown))
  const current = async () => (await read(key, { operation: 'event.get', event_id: id })).event
  const moderate = (operation, words, usual, done) =>
    withReason(item, {
      label: 'Reason',
      placeholder: 'Reason, for the members',
      words,
      act: async (given) => {
        await send(key, { operation, event_id: id, reason: given === '' ? usual : given })
        list.fill(post, await current())
        tell(done)
      },
    })
  const hide = () => moderate('room.hide', 'Hide the post', 'Against the rules of this room.', 'The post is hidden.')
  const restore = () => moderate('room.restore', 'Show the post again', 'It may be shown.', 'The post is shown again.')
  const gone = (reason) => list.fill(post, { ...post.event, text: undefined, reason })
  const offered = [
    ['Reply', () => under({ replyTo: id, label: `Reply to ${nameOf(event.author)}` }), mayReply && !isGone],
    ['Edit', async () => under(versionOf(await current()), item), isOwn && mayEdit && !isGone],
    ['Take back', () => takeBack(item, key, id, gone), isOwn && !isGone],
    ['Hide', hide, isModerator && !isOwn && !isGone],
    ['Show again', restore, isModerator && isGone && isByModerator(event)],
  ]
  const failing = (act) => async () => {
    try {
      await act()
    } catch (error) {
      note(item, said(error))
    }
  }
  const buttons = offered.flatMap(([words, act, isOffered]) =>
    isOffered ? [button(words, failing(act), 'plain')] : [],
  )
  return buttons.length === 0 ? [] : [make('div', { class: 'under' }, make('span', { class: 'acts' }, ...buttons))]
}

/** The posts of an open room, newest first. `reader`: who reads it, and their key. */
const postList = (reader) => {
  const { room, key } = reader
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
    post.event = event
    post.at = list.received
    const words = visible(isGone ? goneWords(event) : event.text)
    const text = make('p', { class: isGone ? 'text gone' : 'text', dir: 'auto' }, words)
    const hadFocus = post.item.querySelector(':scope > .under')?.contains(document.activeElement)
    // A form that is open under the post stays, and with it the focus.
    for (const each of [...post.item.children]) if (!each.matches('.in-place')) each.remove()
    post.item.prepend(
      make('div', { class: 'by' }, person(event.author), make('span', { class: 'at' }, time(event.created_at))),
      ...contextOf(event, shown),
      text,
      ...(isGone ? [] : filesOf(key, event.attachments)),
      ...actsOn(list, post, reader),
    )
    if (hadFocus) focusOn(post.item)
    // No reply quotes what its post no longer says.
    for (const other of shown.values())
      if (other.event?.reply_to === post.id)
        other.item.querySelector(':scope > .context').replaceWith(...contextOf(other.event, shown))
    if (!isGone && event.format === 'markdown') layOut(event.text, text)
    announce(post.item)
  }
  list.show = (event) => {
    const known = shown.get(event.supersedes ?? event.event_id)
    if (known !== undefined) return list.fill(known, { ...event, created_at: known.event.created_at })
    if (event.supersedes !== undefined || event.hidden) {
      list.unlisted++
      return
    }
    const post = { item: make('li', { class: 'post', 'data-seq': event.seq }), seq: event.seq, id: event.event_id }
    const [older] = [...shown.values()].filter(({ seq }) => seq < post.seq).sort((a, b) => b.seq - a.seq)
    element.insertBefore(post.item, older?.item ?? null)
    shown.set(post.id, post)
    list.fill(post, event)
  }
  list.receive = (event) => {
    list.received++
    const isNew = !shown.has(event.event_id)
    list.show(event)
    // Screen readers announce it; what the reader wrote is announced where it was written.
    if (isNew && shown.has(event.event_id) && event.author.id !== reader.own)
      tell(`${nameOf(event.author)}: ${beginning(event.text)}`)
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

/** The button that follows a room, and how much is new there. */
const following = (room, ...more) =>
  make(
    'p',
    { class: 'actions' },
    make('button', { type: 'button', hidden: '', 'data-follow-room': room }),
    ...more,
    make('span', { class: 'quiet unread', id: 'unread', role: 'status' }),
  )

/** The title and the heading of a private room; a conversation has the names of its people. */
const headOf = async (room, key, about) => {
  if (isConversation(room)) {
    const [own, members] = await Promise.all([me(), readAll(key, { operation: 'room.members', room }, 'members')])
    const others = members.filter(({ id }) => id !== own?.who.id)
    const title = `Conversation with ${others.map(nameOf).join(', ')}`
    const head = [make('p', { class: 'crumbs' }, link('/inbox', 'Inbox')), make('h1', {}, title), following(room)]
    return { title, head }
  }
  const head = [
    make('p', { class: 'crumbs' }, link('/rooms', 'Rooms'), ' / private'),
    make('h1', {}, room),
    ...(about.about === undefined ? [] : [make('p', { class: 'lead', dir: 'auto' }, visible(about.about))]),
    following(room, link(`/account/rooms?room=${room}`, 'People and invites')),
    ...(about.closed ? [make('p', { class: 'note' }, 'This room is closed: it is read-only.')] : []),
  ]
  return { title: room, head }
}

/** The documents of a private room, which document.js keeps up with the key. */
const showDocuments = (room) => {
  slot.before(make('div', { id: 'document-acts', 'data-room': room, 'data-private': '' }))
  void import('./document.js').catch(() => {})
}

/**
 * An open private room: its newest posts by signed commands, new ones by a short-lived token, older ones on request. After each
 * reconnection the list is loaded again, as far down as it is shown, so nothing is missing, and posts removed in the meantime are not
 * shown. The connection state is shown above it; a person who may no longer read the room is notified.
 */
const openRoom = async (slot, key) => {
  const { room } = slot.dataset
  const status = make('p', { class: 'live', role: 'status' })
  const [own, { room: about }] = await Promise.all([me(), read(key, { operation: 'room.get', room })])
  const { role, closed, policy = {} } = about
  const list = postList({
    room,
    key,
    own: own?.who.id,
    isModerator: role === 'owner' || role === 'moderator',
    mayReply: !closed && policy.reply !== 'none',
    mayEdit: !closed,
  })
  const connection = connectionOf(status)
  const reader = roomReader(slot, key, list, connection)
  await reader.renew()
  const clock = setInterval(list.expire, 1_000)
  leave = () => {
    connection.leave()
    clearInterval(clock)
  }
  // The page showed a refusal until now.
  const { title, head } = await headOf(room, key, about)
  setTitle(title)
  document.querySelector('.head')?.replaceChildren(...head)
  const documents = document.getElementById('document-acts')
  slot.closest('.content')?.replaceChildren(...(documents === null ? [] : [documents]), slot)
  if (documents === null && !isConversation(room)) showDocuments(room)
  slot.className = ''
  slot.hidden = false
  slot.setAttribute('aria-label', `Private room ${room}`)
  const label = `Write to ${isConversation(room) ? 'them' : room}`
  const onPosted = ({ event }) => list.receive(event)
  const mayWrite = policy.write !== 'owner' || role === 'owner'
  const write = mayWrite
    ? make('div', { class: 'writer' }, await composer({ room, isPrivate: true, label, onPosted }))
    : quiet('Only the owner of this room starts threads here.')
  slot.replaceChildren(
    ...(closed ? [] : [write]),
    make('h2', { class: 'unseen' }, 'Posts'),
    status,
    list.element,
    reader.goOn,
  )
  announce(list.element)
  void follow().catch(() => {})
  void followRoom(list, reader, connection).catch(connection.stop)
}

/** Opens a private room for its members; for others, shows its entrance. */
const privateRoom = async (slot, key) => {
  slot.hidden = false
  slot.replaceChildren(soon())
  try {
    await openRoom(slot, key)
  } catch (error) {
    entrance(slot, key, error)
  }
}

/** The entrance to a private room, for people who have an invite or become members while they wait. */
const entrance = (slot, key, refused) => {
  const { room } = slot.dataset
  slot.className = 'writer'
  slot.hidden = false
  const isKnown = refused instanceof Refused && refused.code === 'private_room'
  const problem = make('p', { role: 'alert', class: 'problem' }, isKnown ? '' : said(refused))
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
    make('h2', {}, isKnown ? 'Your key is not a member of this room' : 'The room did not open'),
    make('p', {}, 'Its owner can add you, or give you an invite:'),
    make('div', { class: 'actions' }, code, button('Join', join)),
    make('div', { class: 'actions' }, button('Try again', attempt(open))),
    problem,
  )
}

if (slot !== null) void build().then(open)
