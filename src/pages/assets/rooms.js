/** /account/rooms: the rooms of the reader, and a new one with its policy; for an existing room (`?room=`) its people, invites, and policy. */
import {
  announce,
  button,
  checkbox,
  doing,
  field,
  focusOn,
  form,
  identityOf,
  input,
  keyFirst,
  link,
  make,
  person,
  quiet,
  read,
  readAll,
  rows,
  said,
  section,
  select,
  send,
  showing,
  time,
} from './board.js'
import { me } from './me.js'
import { policyFields, policyForm, policyIn } from './policy.js'

const place = document.getElementById('rooms')
const room = new URLSearchParams(location.search).get('room') ?? ''
const roomInput = () => input('room', { autocapitalize: 'none', required: '', maxlength: '64' })
const manageLink = (name) => `/account/rooms?room=${encodeURIComponent(name)}`

const newRoom = (key) => {
  const about = make('textarea', { name: 'about', rows: '2' })
  const fields = [
    field('Name, of a-z 0-9 _ -', roomInput()),
    field('What it is about', about),
    checkbox('private', 'Private: only its members can read it, and it is in no list'),
    field('First members, each an @handle', input('members')),
    ...policyFields(),
  ]
  const create = async (given, say) => {
    const name = given.room.trim()
    const named = given.members.split(/[\s,]+/).filter((each) => each !== '')
    const members = await Promise.all(named.map(identityOf))
    const visibility = given.private === undefined ? 'public' : 'private'
    const text = given.about.trim()
    await send(key, { operation: 'room.create', room: name, visibility, members, text }, { say })
    await renewOwn(key).catch(() => {})
    const ways = [link(`/room/${name}`, 'open it'), ', or ', link(manageLink(name), 'invite people'), '.']
    // Threads of a private room are never on the front page.
    const data = { ...policyIn(given), ...(visibility === 'private' ? { front_page: false } : {}) }
    try {
      await send(key, { operation: 'room.policy.set', room: name, data }, { say })
    } catch (error) {
      return make('span', {}, 'Created, but its policy is not set. ', said(error), ' You can ', ...ways)
    }
    return make('span', {}, 'Created: ', ...ways)
  }
  return form(fields, 'Create the room', create, 'room')
}

/** A code that is shown only once, and a button that copies it. */
const codeOf = ({ code, expires_at: until }) =>
  make(
    'span',
    {},
    'For one person, until ',
    time(until),
    ': ',
    make('code', {}, code ?? 'shown before'),
    ' ',
    button('Copy', () => navigator.clipboard.writeText(code)),
    ` They join with it at ${location.origin}/room/${room}.`,
  )
const lifetimes = [
  ['86400', 'A day'],
  ['3600', 'An hour'],
  ['604800', 'A week'],
]
const inviteSection = (key) =>
  section(
    'Invite someone',
    form(
      [
        field('For @handle; anyone who has the code when empty', input('who')),
        field('It lasts', select('ttl', lifetimes)),
      ],
      'Create an invite',
      async ({ who, ttl }) => {
        const target = await identityOf(who.trim())
        const { invite } = await send(key, { operation: 'room.invite.create', room, target, ttl: Number(ttl) })
        return codeOf(invite)
      },
    ),
  )

const peopleSection = (key, members, isOwner) => {
  const change = (operation, target) => send(key, { operation, room, target }).then(build)
  const actsOf = ({ id, role }) => {
    if (!isOwner || role === 'owner') return []
    const promotion =
      role === 'moderator'
        ? ['Make an ordinary member', () => change('room.moderator.remove', id)]
        : ['Make a moderator', () => change('room.moderator.add', id)]
    return [promotion, ['Remove', () => change('room.member.remove', id)]]
  }
  const list = rows(members, (each) => [person(each), make('span', { class: 'tag' }, each.role)], actsOf)
  const adding = form([field('@handle or id', input('who', { required: '' }))], 'Add as a member', async ({ who }) => {
    await change('room.member.add', await identityOf(who.trim()))
  })
  const none = quiet('No one yet.')
  return section('People', members.length === 0 ? none : list, ...(isOwner ? [adding] : []))
}

const transfer = (key) =>
  make(
    'details',
    {},
    make('summary', {}, 'Give the room to someone else'),
    make('p', {}, 'They own it from then on, and only they can give it back. You stay as a member.'),
    form([field('@handle or id', input('who', { required: '' }))], 'Transfer the room', async ({ who }) => {
      await send(key, { operation: 'room.owner.transfer', room, target: await identityOf(who.trim()) })
      await build()
    }),
  )

/** A private room can no longer be shown to a person who has left it. */
const leave = async (key, visibility) => {
  await send(key, { operation: 'room.leave', room })
  if (visibility === 'public') return build()
  place.replaceChildren(
    section(room, make('p', {}, 'You have left this room. ', link('/account/rooms', 'Your rooms'), '.')),
  )
  return focusOn(place)
}

/** What a person who is not the owner may do about their own membership. */
const membership = (key, role, visibility) => {
  if (role === 'member' || role === 'moderator') return [doing(['Leave the room', () => leave(key, visibility)])]
  if (role === 'none' && visibility === 'public')
    return [doing(['Join the room', () => send(key, { operation: 'room.join', room }).then(build)])]
  return []
}

const roomParts = async (key) => {
  const [{ room: found }, { policy }, members] = await Promise.all([
    read(key, { operation: 'room.get', room }),
    read(key, { operation: 'room.policy.get', room }),
    readAll(key, { operation: 'room.members', room }, 'members'),
  ])
  const { role = 'none', visibility } = found
  const isOwner = role === 'owner'
  const you = role === 'none' ? 'You are not a member' : `You are its ${role}`
  return [
    section(
      room,
      make(
        'p',
        {},
        `A ${visibility} room. ${you}. `,
        link(`/room/${room}`, 'Open it'),
        ...(isOwner || role === 'moderator' ? [', or ', link(`/moderate?room=${room}`, 'moderate it')] : []),
        '.',
      ),
      ...membership(key, role, visibility),
    ),
    peopleSection(key, members, isOwner),
    ...(isOwner
      ? [inviteSection(key), section('Policy', policyForm(key, room, policy, visibility === 'private'), transfer(key))]
      : []),
  ]
}

/** The rooms that the reader is in, from the board: the same list in every browser with their key. */
const ownPlace = make('div', {})
const renewOwn = async (key) => {
  const own = await readAll(key, { operation: 'rooms.list', data: { schema: 1, own: true } }, 'rooms')
  const lineOf = ({ name, visibility, role }) => [
    make('b', {}, link(`/room/${name}`, name)),
    ...(visibility === 'private' ? [make('span', { class: 'tag' }, 'private')] : []),
    make('span', {}, role),
    link(manageLink(name), 'People and policy'),
  ]
  ownPlace.replaceChildren(own.length === 0 ? quiet('None yet.') : rows(own, lineOf, () => []))
}

const joining = (key) =>
  form(
    [field('The code that you were given', input('code', { required: '', maxlength: '128' }))],
    'Join',
    async (given) => {
      const code = given.code.trim()
      const { room: joined } = await send(key, { operation: 'room.invite.accept', data: { schema: 1, code } })
      await renewOwn(key).catch(() => {})
      return make('span', {}, 'You are a member: ', link(`/room/${joined}`, 'open the room'), '.')
    },
  )
const opening = () =>
  form([field('Its name', roomInput())], 'Show its people', ({ room: name }) =>
    location.assign(manageLink(name.trim())),
  )

const build = async () => {
  const own = await me()
  if (own === undefined) return place.replaceChildren(keyFirst('To make, join and manage rooms, '))
  const { key } = own
  if (room === '') await renewOwn(key)
  const parts =
    room === ''
      ? [
          section('Rooms that you are in', ownPlace),
          section('New room', newRoom(key)),
          section('Join with an invite', joining(key)),
          section('A room that exists', opening()),
        ]
      : await roomParts(key)
  const hadFocus = place.contains(document.activeElement)
  place.replaceChildren(...parts)
  announce(place)
  if (hadFocus) focusOn(place)
}
const show = showing(place, build)
void show()
document.addEventListener('key-changed', () => void show())
