/** /inbox: news in what the reader follows, replies and mentions, and their conversations. Displayed items count as seen. */
import {
  announce,
  beginning,
  button,
  doing,
  field,
  focusOn,
  folded,
  form,
  identityAt,
  identityOf,
  input,
  isConversation,
  keyFirst,
  link,
  make,
  person,
  quiet,
  read,
  section,
  send,
  showing,
  time,
  visible,
} from './board.js'
import { me, newIn, news, seen, show } from './me.js'

const place = document.getElementById('inbox')
const words = {
  reply: 'replied to you',
  mention: 'mentioned you',
  addressed: 'wrote to you',
  request: 'wants to talk with you',
}

const newTag = (follow) => make('span', { class: 'tag new' }, `${newIn(follow)} new`)

const followLine = (follow) => {
  const { room, thread, title } = follow
  const href = thread === undefined ? `/room/${room}` : `/e/${follow.last?.event_id ?? thread}`
  const name = thread === undefined ? room : (title ?? 'a thread')
  const line = make(
    'div',
    { class: 'line' },
    newTag(follow),
    thread === undefined ? 'in the room' : `in a thread of ${room}`,
  )
  if (follow.last !== undefined) line.append(time(follow.last.created_at))
  return make('li', {}, make('b', {}, link(href, visible(name))), line)
}

/** Follows a conversation, so that its messages count as news. If that fails, its page has a button for it. */
const followTalk = (key, room) => send(key, { operation: 'room.follow', room }).catch(() => {})

/** Buttons to accept, decline, or block a conversation that someone opened. */
const answers = (key, room) => {
  const answer = (value) => send(key, { operation: 'conversation.respond', room, data: { schema: 1, answer: value } })
  return doing(
    [
      'Accept',
      async () => {
        await answer('accept')
        await followTalk(key, room)
        location.assign(`/room/${room}`)
      },
    ],
    ['Decline', () => answer('decline').then(() => 'Declined.')],
    ['Block', () => answer('block').then(() => 'Blocked.')],
  )
}

const itemLine = async (key, item, since) => {
  const { type, at, from, event, conversation } = item
  const fresh = at > since ? [make('span', { class: 'tag new' }, 'new')] : []
  const head = make(
    'div',
    { class: 'line' },
    ...fresh,
    person(event?.author ?? (await identityAt(from))),
    words[type],
    time(at),
  )
  if (event === undefined) return make('li', {}, head, answers(key, conversation.room))
  const where = event.log.state === 'included' ? `/e/${event.event_id}` : `/room/${event.room}`
  return make('li', {}, head, make('p', {}, link(where, beginning(event.text) || 'The text is gone')))
}

const conversationLine = async (own, follows, { room, members, updated_at: at, count }) => {
  const others = await Promise.all(members.filter((id) => id !== own).map(identityAt))
  const fresh = follows.filter((each) => each.room === room).map(newTag)
  return make(
    'li',
    {},
    make(
      'div',
      { class: 'line' },
      ...fresh,
      ...others.map(person),
      link(`/room/${room}`, 'open'),
      make('span', {}, count === 1 ? '1 message' : `${count} messages`),
      time(at),
    ),
  )
}

/** A signed list, which goes on when it is asked to. `found`: its beginning. */
const listOf = async (key, fields, found, { name, lineOf, none }) => {
  if (found[name].length === 0) return [quiet(none)]
  const list = make('ul', { class: 'rows' })
  let cursor
  const add = async (page) => {
    list.append(...(await Promise.all(page[name].map(lineOf))))
    announce(list)
    cursor = page.next_cursor
    if (cursor !== undefined) return ' '
    if (more.contains(document.activeElement)) focusOn(list)
    more.remove()
  }
  const more = doing(['Older', () => read(key, { ...fields, cursor }).then(add)])
  await add(found)
  return cursor === undefined ? [list] : [list, more]
}

/** A first message to someone, in a new private room. */
const beginTalk = (key) => {
  const to = input('to', { required: '', maxlength: '64' })
  const text = make('textarea', { name: 'text', rows: '3', required: '' })
  return form(
    [field('To @handle', to), field('Message', text)],
    'Send',
    async (given, say) => {
      const target = await identityOf(given.to.trim())
      const { conversation } = await send(
        key,
        { operation: 'conversation.open', members: [target], text: given.text },
        { say },
      )
      await followTalk(key, conversation.room)
      return make('span', {}, 'Sent: ', link(`/room/${conversation.room}`, 'open the conversation'), '.')
    },
    'message',
  )
}

/** The time up to which items count as read here, whether the board knows it or not. */
let readUntil = 0

const readAll = (follows, newest) =>
  button('Mark everything as read', async () => {
    const places = follows.flatMap(({ room, thread, last }) =>
      last === undefined ? [] : [{ room, thread, seq: last.seq }],
    )
    readUntil = newest
    await seen(...places, { inbox: newest })
    await Promise.all([show(), build()])
    focusOn(place)
  })

const build = async () => {
  const own = await me()
  if (own === undefined) return place.replaceChildren(keyFirst('To open your inbox, '))
  const fields = [
    { operation: 'inbox.get', limit: 50 },
    { operation: 'conversations.list', kind: 'active', limit: 50 },
  ]
  const [inbox, conversations] = await Promise.all(fields.map((each) => read(own.key, each)))
  const { items, seen: known } = inbox
  const since = Math.max(known, readUntil)
  const fresh = (await news(0)).follows.filter((each) => newIn(each) > 0)
  const follows = fresh.filter(({ room }) => !isConversation(room))
  const [lines, talks] = await Promise.all([
    listOf(own.key, fields[0], inbox, {
      name: 'items',
      lineOf: (item) => itemLine(own.key, item, since),
      none: 'No one has replied to you, mentioned you or written to you yet.',
    }),
    listOf(own.key, fields[1], conversations, {
      name: 'conversations',
      lineOf: (each) => conversationLine(own.who.id, fresh, each),
      none: 'None yet.',
    }),
  ])
  const newest = Math.max(0, ...items.map(({ at }) => at))
  place.replaceChildren(
    section(
      'In what you follow',
      follows.length === 0 ? quiet('Nothing new.') : make('ul', { class: 'rows' }, ...follows.map(followLine)),
      ...(follows.length === 0 ? [] : [make('p', {}, readAll(follows, newest))]),
    ),
    section('To you', ...lines),
    section('Conversations', ...talks, folded('Write to someone in private', beginTalk(own.key), 'message')),
  )
  announce(place)
  if (newest > since) await seen({ inbox: newest })
  await show()
}
const showInbox = showing(place, build)
void showInbox()
document.addEventListener('key-changed', () => void showInbox())
