/** What people do on a board: each act makes a command from what is known, at random. */
import type { SeededRandom } from '../support/seeded-random.ts'
import { type Model, type Post, type Room, type Sent, secretMark, type Work } from './model.ts'
import { type Fields, type Person, signerOf } from './people.ts'

export type Command = {
  readonly by: Person
  readonly fields: Fields
  /** Another of their keys signs, or a delegate's with this name. */
  readonly key?: number | string
  /** A second key proves its consent. */
  readonly coSigner?: string | number
  readonly nonce?: string
  /** It has to be refused, with one of these codes; with any if there are none. */
  readonly refusedAs?: readonly string[]
  /** Whether that still holds: commands sent meanwhile may have changed it. */
  readonly holds?: () => boolean
  readonly onAccepted?: Sent['onAccepted']
  /** The same bytes that were sent before. */
  readonly resend?: Sent
  /** Its content is sent again with its request id: the answer must be the same. */
  readonly sameRequestAs?: Sent
}

export type Act = (model: Model, chance: SeededRandom, step: number) => Command | undefined

export const data = (value: object): string => JSON.stringify({ schema: 1, ...value })

export function someone(model: Model, chance: SeededRandom): Person {
  return chance.pick(model.people)!
}

function roomFor(model: Model, chance: SeededRandom, isPrivate: boolean): Room | undefined {
  return chance.pick([...model.rooms.values()].filter((room) => room.isPrivate === isPrivate))
}

/** A person who may be in the room. */
function personWithAccess({ isPrivate, everAllowed }: Room, model: Model, chance: SeededRandom): Person {
  return isPrivate ? chance.pick([...everAllowed])! : someone(model, chance)
}

/** Newer items are more likely to be picked. */
function recent<Item>(
  items: ReadonlyMap<string, Item>,
  chance: SeededRandom,
  fits: (item: Item) => boolean,
): Item | undefined {
  const all = [...items.values()]
  return chance.pick(all.slice(-64).filter(fits))
}

function textOf(room: Room, chance: SeededRandom, step: number): string {
  const word = room.isPrivate ? `${secretMark} ` : ''
  return `${word}text ${step} `.padEnd(20 + chance.below(chance.below(10) === 0 ? 1_500 : 120), 'x')
}

/** Records an accepted post in the model. */
export function recordPost(by: Person, room: string, text: string, supersedes = ''): Sent['onAccepted'] {
  return (answer, model) => {
    const event = answer.event as { event_id: string; seq: number; thread: string } | undefined
    if (event === undefined) return
    const original = supersedes === '' ? event.event_id : (model.posts.get(supersedes)?.original ?? supersedes)
    const { event_id: id, seq, thread } = event
    const post: Post = { id, room, seq, by, text, original, thread }
    model.posts.set(post.id, post)
  }
}

function postInto(room: Room, by: Person, chance: SeededRandom, step: number, more: object = {}): Command {
  const text = textOf(room, chance, step)
  const request = chance.below(4) === 0 ? { request_id: `request-${step}` } : {}
  return {
    by,
    fields: { operation: 'post', room: room.name, text, ...request, ...more },
    onAccepted: recordPost(by, room.name, text),
  }
}

const post: Act = (model, chance, step) =>
  postInto(roomFor(model, chance, false)!, someone(model, chance), chance, step)

const privatePost: Act = (model, chance, step) => {
  const room = roomFor(model, chance, true)
  if (room === undefined) return undefined
  return postInto(room, personWithAccess(room, model, chance), chance, step)
}

const reply: Act = (model, chance, step) => {
  const to = recent(model.posts, chance, () => true)
  if (to === undefined) return undefined
  const room = model.rooms.get(to.room)!
  const by = personWithAccess(room, model, chance)
  return postInto(room, by, chance, step, { reply_to: to.id })
}

/** Its text expires. */
const expiringPost: Act = (model, chance, step) => {
  const room = roomFor(model, chance, chance.below(2) === 0)
  if (room === undefined) return undefined
  const by = personWithAccess(room, model, chance)
  const made = postInto(room, by, chance, step, { ttl: 60 + chance.below(400) })
  return {
    ...made,
    onAccepted: (answer, known) => {
      made.onAccepted?.(answer, known)
      const { event_id: id } = (answer.event ?? {}) as { event_id?: string }
      if (id !== undefined) known.expiring.add(id)
    },
  }
}

const edit: Act = (model, chance, step) => {
  const old = recent(model.posts, chance, () => true)
  if (old === undefined) return undefined
  const room = model.rooms.get(old.room)!
  const text = textOf(room, chance, step)
  const fields = { operation: 'post', room: old.room, text, data: data({ supersedes: old.id }) }
  return { by: old.by, fields, onAccepted: recordPost(old.by, old.room, text, old.id) }
}

function onPost(
  operation: string,
  more: object,
  doubts: boolean,
  onAccepted?: (target: Post, model: Model) => void,
): Act {
  return (model, chance) => {
    const target = recent(model.posts, chance, () => true)
    if (target === undefined) return undefined
    const room = model.rooms.get(target.room)!
    const by = chance.pick([target.by, room.owner ?? model.operator])!
    if (doubts) model.removalRequested.add(target.original)
    const done = onAccepted === undefined ? {} : { onAccepted: () => onAccepted(target, model) }
    return { by, fields: { operation, event_id: target.id, ...more }, ...done }
  }
}

/** Redacted for certain: no version of it has a text from here on. */
const recordRedaction = (target: Post, { redacted }: Model): void => void redacted.add(target.original)

const lockedReply: Act = (model, chance, step) => {
  const thread = chance.pick([...model.locked])
  const post = thread === undefined ? undefined : model.posts.get(thread)
  const by = someone(model, chance)
  if (post === undefined || by === model.operator || model.isPrivate(post.room)) return undefined
  const room = model.rooms.get(post.room)!
  if (room.owner !== undefined) return undefined
  const fields = { operation: 'post', room: post.room, text: `into a locked thread ${step}`, reply_to: post.id }
  return { by, fields, refusedAs: [], holds: () => model.locked.has(post.id) }
}

const vote: Act = (model, chance) => {
  const target = recent(model.posts, chance, () => true)
  if (target === undefined) return undefined
  return {
    by: someone(model, chance),
    fields: { operation: 'vote', event_id: target.id, data: data({ value: chance.below(3) - 1 }) },
  }
}

const createRoom: Act = (model, chance, step) => {
  const isPrivate = chance.below(2) === 0
  if ([...model.rooms.values()].filter((room) => room.isPrivate === isPrivate).length >= 5) return undefined
  const owner = someone(model, chance)
  const name = isPrivate ? `${secretMark}-${step}` : `room-${step}`
  const members = isPrivate ? [someone(model, chance), someone(model, chance)] : []
  const room: Room = { name, isPrivate, owner, everAllowed: new Set([owner, ...members]), mayOwn: new Set([owner]) }
  const listed = [...new Set(members)].filter((member) => member !== owner).map(({ id }) => id)
  const fields = { operation: 'room.create', room: name, ...(isPrivate ? { visibility: 'private' } : {}) }
  return {
    by: owner,
    fields: listed.length === 0 ? fields : { ...fields, members: listed },
    onAccepted: (_, { rooms }) => void rooms.set(name, room),
  }
}

/** The board itself checks rights: whoever is named may be in from here on. */
function changeRole(operation: string): Act {
  return (model, chance) => {
    const room = roomFor(model, chance, chance.below(3) > 0)
    if (room?.owner === undefined) return undefined
    const target = someone(model, chance)
    const by = chance.below(5) === 0 ? someone(model, chance) : room.owner
    room.everAllowed.add(target)
    return { by, fields: { operation, room: room.name, target: target.id } }
  }
}

const transferRoom: Act = (model, chance) => {
  const room = roomFor(model, chance, chance.below(2) === 0)
  if (room?.owner === undefined) return undefined
  const target = someone(model, chance)
  room.everAllowed.add(target)
  room.mayOwn.add(target)
  return { by: room.owner, fields: { operation: 'room.owner.transfer', room: room.name, target: target.id } }
}

const ownRole = (operation: string): Act => {
  return (model, chance) => {
    const room = roomFor(model, chance, operation === 'room.leave' && chance.below(2) === 0)
    const by = room?.isPrivate ? chance.pick([...room.everAllowed]) : someone(model, chance)
    if (room === undefined || by === undefined) return undefined
    if (!room.isPrivate) room.everAllowed.add(by)
    return { by, fields: { operation, room: room.name } }
  }
}

const invite: Act = (model, chance) => {
  const room = roomFor(model, chance, true)
  if (room?.owner === undefined) return undefined
  return {
    by: room.owner,
    fields: { operation: 'room.invite.create', room: room.name, ttl: 3_600 },
    onAccepted: ({ invite: made }, { invites }) => {
      const { code } = made as { code?: string }
      if (code !== undefined) invites.push({ code, room: room.name })
    },
  }
}

const acceptInvite: Act = (model, chance) => {
  const found = chance.pick(model.invites)
  if (found === undefined) return undefined
  const by = someone(model, chance)
  model.rooms.get(found.room)!.everAllowed.add(by)
  return { by, fields: { operation: 'room.invite.accept', data: data({ code: found.code }) } }
}

const policy: Act = (model, chance) => {
  const room = roomFor(model, chance, chance.below(2) === 0)
  if (room?.owner === undefined) return undefined
  const write = chance.below(3) === 0 ? 'members' : 'open'
  return {
    by: room.owner,
    fields: { operation: 'room.policy.set', room: room.name, data: JSON.stringify({ write, rules: 'be kind' }) },
  }
}

const ban: Act = (model, chance) => {
  const room = roomFor(model, chance, chance.below(2) === 0)
  if (room?.owner === undefined) return undefined
  const target = someone(model, chance).id
  const unban = chance.below(3) > 0
  return {
    by: room.owner,
    fields: unban
      ? { operation: 'room.unban', room: room.name, target }
      : { operation: 'room.ban', room: room.name, target, ttl: 600, reason: 'noise' },
  }
}

const grant: Act = (model, chance) => {
  const amount = 1 + chance.below(500)
  return {
    by: model.operator,
    fields: { operation: 'credit.grant', target: someone(model, chance).id, amount },
    onAccepted: (_, known) => {
      known.minted += amount
    },
  }
}

const transfer: Act = (model, chance) => ({
  by: someone(model, chance),
  fields: { operation: 'credit.transfer', target: someone(model, chance).id, amount: 1 + chance.below(60) },
})

type WorkView = { readonly id: string; readonly state: string; readonly fence: number; readonly result_id?: string }

/** Every answer about a work shows its current state. */
const recordWork: Sent['onAccepted'] = (answer, { works }) => {
  // Absent if the disk failed a read: the decision stands all the same.
  const shown = answer.work as WorkView | undefined
  if (shown === undefined) return
  const work = works.get(shown.id)
  if (work === undefined) return
  work.state = shown.state
  work.fence = shown.fence
}

const createWork: Act = (model, chance, step) => {
  const room = roomFor(model, chance, chance.below(4) === 0)
  if (room === undefined) return undefined
  const by = personWithAccess(room, model, chance)
  const text = textOf(room, chance, step)
  const title = room.isPrivate ? `${secretMark} work` : 'work'
  const fields = {
    operation: 'work.create',
    room: room.name,
    text,
    amount: 1 + chance.below(120),
    data: data({ title }),
  }
  return {
    by,
    fields,
    onAccepted: (answer, { works }) => {
      const shown = answer.work as WorkView | undefined
      if (shown === undefined) return
      const { id, state } = shown
      works.set(id, { id, room: room.name, requester: by, worker: undefined, fence: 0, state, result: '' })
    },
  }
}

const claimWork: Act = (model, chance) => {
  const work = recent(model.works, chance, ({ state }) => state === 'open')
  if (work === undefined) return undefined
  const room = model.rooms.get(work.room)!
  const by = personWithAccess(room, model, chance)
  return {
    by,
    fields: { operation: 'work.claim', event_id: work.id, ttl: 900 + chance.below(3_600) },
    onAccepted: (answer, known) => {
      work.worker = by
      recordWork?.(answer, known)
    },
  }
}

/** The result is a reply of the worker to the request. */
const resultOfWork: Act = (model, chance, step) => {
  const work = recent(model.works, chance, ({ worker, result }) => worker !== undefined && result === '')
  if (work?.worker === undefined) return undefined
  const made = postInto(model.rooms.get(work.room)!, work.worker, chance, step, { reply_to: work.id, kind: 'result' })
  return {
    ...made,
    onAccepted: (answer, known) => {
      made.onAccepted?.(answer, known)
      work.result = (answer.event as { event_id: string } | undefined)?.event_id ?? ''
    },
  }
}

function byWorker(operation: string, more: (work: Work, chance: SeededRandom) => object = () => ({})): Act {
  return (model, chance) => {
    const work = recent(model.works, chance, ({ worker, fence }) => worker !== undefined && fence > 0)
    if (work?.worker === undefined) return undefined
    const isWrong = chance.below(5) === 0
    const amount = isWrong ? work.fence + 1_000 : work.fence
    const fields = { operation, event_id: work.id, amount, ...more(work, chance) }
    return { by: work.worker, fields, onAccepted: recordWork, ...(isWrong ? { refusedAs: [] } : {}) }
  }
}

const submitWork: Act = (model, chance) => {
  const work = recent(
    model.works,
    chance,
    ({ worker, result, state }) =>
      worker !== undefined && result !== '' && (state === 'claimed' || state === 'revision'),
  )
  if (work?.worker === undefined) return undefined
  return {
    by: work.worker,
    fields: { operation: 'work.submit', event_id: work.id, amount: work.fence, target: work.result },
    onAccepted: recordWork,
  }
}

function byReviewer(operation: string, more: object = {}): Act {
  return (model, chance) => {
    const work = recent(model.works, chance, () => true)
    if (work === undefined) return undefined
    return { by: work.requester, fields: { operation, event_id: work.id, ...more }, onAccepted: recordWork }
  }
}

const rule: Act = (model, chance) => {
  const work = recent(model.works, chance, ({ state }) => state === 'disputed')
  if (work === undefined) return undefined
  const percent = chance.below(101)
  const by = model.rooms.get(work.room)!.owner ?? model.operator
  return {
    by,
    fields: { operation: 'work.rule', event_id: work.id, reason: 'some of it fits', data: data({ percent }) },
    onAccepted: recordWork,
  }
}

const createDoc: Act = (model, chance, step) => {
  const room = roomFor(model, chance, chance.below(2) === 0)
  if (room === undefined) return undefined
  const by = personWithAccess(room, model, chance)
  const title = room.isPrivate ? `${secretMark} doc` : 'doc'
  const text = `${textOf(room, chance, step)}\n\nsecond\n\nthird\n`
  return {
    by,
    fields: { operation: 'docs.create', room: room.name, text, data: data({ title }) },
    onAccepted: (answer, { docs }) => {
      const { id, version } = answer.doc as { id: string; version: number }
      docs.set(id, { id, owner: by, room: room.name, version })
    },
  }
}

const writeDoc: Act = (model, chance, step) => {
  const doc = recent(model.docs, chance, () => true)
  if (doc === undefined) return undefined
  const text = `${textOf(model.rooms.get(doc.room)!, chance, step)}\n\nsecond\n\nthird\n`
  return {
    by: doc.owner,
    fields: { operation: 'docs.write', target: doc.id, text, data: data({ base_version: doc.version }) },
    onAccepted: (answer) => {
      doc.version = (answer.doc as { version: number }).version
    },
  }
}

const deleteDoc: Act = (model, chance) => {
  const doc = recent(model.docs, chance, () => true)
  if (doc === undefined) return undefined
  model.docs.delete(doc.id)
  return { by: doc.owner, fields: { operation: 'docs.delete', target: doc.id, reason: 'another one has it' } }
}

const putFile: Act = (model, chance, step) => {
  const room = roomFor(model, chance, chance.below(2) === 0)
  if (room === undefined) return undefined
  const by = personWithAccess(room, model, chance)
  const filename = room.isPrivate ? `${secretMark}.txt` : 'file.txt'
  const bytes = Buffer.from(`${textOf(room, chance, step)}`).toString('base64url')
  return {
    by,
    fields: { operation: 'blob.put', room: room.name, filename, media_type: 'text/plain', data: bytes },
    onAccepted: ({ blob }, { files }) => {
      const { id, sha256 } = blob as { id: string; sha256: string }
      files.set(id, { id, by, room: room.name, sha256 })
    },
  }
}

const postWithFile: Act = (model, chance, step) => {
  const file = chance.pick([...model.files.values()])
  if (file === undefined) return undefined
  return postInto(model.rooms.get(file.room)!, file.by, chance, step, { attachments: [file.id] })
}

const deleteFile: Act = (model, chance) => {
  const file = chance.pick([...model.files.values()])
  if (file === undefined) return undefined
  model.files.delete(file.id)
  return { by: file.by, fields: { operation: 'blob.delete', target: file.id, reason: 'the wrong file' } }
}

const takeFileDown: Act = (model, chance) => {
  const file = chance.pick([...model.files.values()])
  if (file === undefined) return undefined
  for (const { id, sha256 } of [...model.files.values()]) if (sha256 === file.sha256) model.files.delete(id)
  return { by: model.operator, fields: { operation: 'blob.takedown', target: file.sha256, reason: 'Malware.' } }
}

const handle: Act = (model, chance) => ({
  by: someone(model, chance),
  fields: { operation: 'identity.register', handle: `handle${chance.below(12)}` },
})

const profile: Act = (model, chance, step) => ({
  by: someone(model, chance),
  fields: { operation: 'identity.profile.set', data: data({ description: `profile ${step}` }) },
})

const rotate: Act = (model, chance) => {
  const by = chance.pick(model.people.slice(1).filter(({ key, keys }) => key + 1 < keys.length))
  if (by === undefined) return undefined
  const from = by.key
  return {
    by,
    fields: { operation: 'identity.rotate', target: by.keys[from + 1]!.publicKey },
    coSigner: from + 1,
    onAccepted: (_, { retired }) => {
      if (by.key !== from) return
      by.key = from + 1
      retired.push({ person: by, key: from })
    },
  }
}

const suspend: Act = (model, chance) => {
  const target = chance.pick(model.people.slice(1))!
  if (model.suspended.size > 1) return undefined
  const hides = chance.below(3) === 0
  const ended = model.ended
  model.everSuspended.add(target)
  if (hides) model.hidden.add(target)
  return {
    by: model.operator,
    fields: {
      ...{ operation: 'identity.suspend', target: target.id, reason: 'it floods' },
      ...(hides ? { data: data({ hide_posts: true }) } : {}),
    },
    onAccepted: (_, { suspended, ended: now }) => void (now === ended && suspended.add(target)),
  }
}

const unsuspend: Act = (model, chance) => {
  const target = chance.pick([...model.suspended])
  if (target === undefined) return undefined
  model.end(model.suspended, target)
  return { by: model.operator, fields: { operation: 'identity.unsuspend', target: target.id } }
}

function moderate(name: 'pin' | 'lock'): Act {
  return (model, chance) => {
    const thread = recent(model.posts, chance, ({ id, original }) => id === original)
    if (thread === undefined) return undefined
    const isOn = chance.below(2) === 0
    // Any post identifies its thread.
    if (name === 'lock' && !isOn) model.end(model.locked, thread.thread)
    const ended = model.ended
    const by = model.rooms.get(thread.room)!.owner ?? model.operator
    const flag = name === 'pin' ? { pinned: isOn } : { locked: isOn }
    const fields = { operation: `thread.${name}`, event_id: thread.id, data: data(flag) }
    if (name === 'pin' || !isOn) return { by, fields }
    return { by, fields, onAccepted: (_, { locked, ended: now }) => void (now === ended && locked.add(thread.thread)) }
  }
}

const delegate: Act = (model, chance, step) => {
  const by = someone(model, chance)
  const name = `delegate ${step}`
  const ttl = 60 + chance.below(chance.below(2) === 0 ? 300 : 86_400)
  const until = model.now + ttl
  return {
    by,
    fields: {
      ...{ operation: 'delegation.create', target: signerOf(name).publicKey, ttl },
      data: data({ scopes: ['board:post', 'board:work'] }),
    },
    coSigner: name,
    onAccepted: (answer, { delegates }) => {
      const { id } = answer.delegation as { id: string }
      delegates.push({ name, person: by, id, until, isOver: false })
    },
  }
}

const postAsDelegate: Act = (model, chance, step) => {
  const found = chance.pick(model.delegates.filter(({ isOver }) => !isOver))
  if (found === undefined) return undefined
  const made = postInto(roomFor(model, chance, false)!, found.person, chance, step)
  return {
    ...made,
    key: found.name,
    onAccepted: (answer, known) => {
      made.onAccepted?.(answer, known)
      const { event_id: id } = (answer.event ?? {}) as { event_id?: string }
      if (id !== undefined) known.delegated.set(id, found.id)
    },
  }
}

const revoke: Act = (model, chance) => {
  const found = chance.pick(model.delegates.filter(({ isOver }) => !isOver))
  if (found === undefined) return undefined
  return {
    by: found.person,
    fields: { operation: 'delegation.revoke', target: found.id },
    onAccepted: () => {
      found.isOver = true
    },
  }
}

const follow: Act = (model, chance) => {
  const room = roomFor(model, chance, false)!
  const operation = chance.below(3) === 0 ? 'room.unfollow' : 'room.follow'
  return { by: someone(model, chance), fields: { operation, room: room.name } }
}

const followThread: Act = (model, chance) => {
  const post = recent(model.posts, chance, ({ room }) => !model.isPrivate(room))
  if (post === undefined) return undefined
  const operation = chance.below(3) === 0 ? 'thread.unfollow' : 'thread.follow'
  return { by: someone(model, chance), fields: { operation, event_id: post.id } }
}

const mute: Act = (model, chance) => {
  const operation = chance.below(3) === 0 ? 'identity.unmute' : 'identity.mute'
  const [by, target] = [someone(model, chance), someone(model, chance)]
  model.mute(by, target)
  return { by, fields: { operation, target: target.id } }
}

const seen: Act = (model, chance) => {
  const post = recent(model.posts, chance, () => true)
  if (post === undefined) return undefined
  const by = personWithAccess(model.rooms.get(post.room)!, model, chance)
  return { by, fields: { operation: 'inbox.seen', data: data({ rooms: [{ room: post.room, seen: post.seq }] }) } }
}

const move: Act = (model, chance) => {
  const thread = recent(model.posts, chance, ({ id, thread }) => id === thread)
  const to = roomFor(model, chance, chance.below(4) === 0)
  if (thread === undefined || to === undefined) return undefined
  const by = chance.pick([model.operator, model.rooms.get(thread.room)!.owner ?? model.operator])!
  return { by, fields: { operation: 'thread.move', event_id: thread.id, data: data({ to: to.name }) } }
}

const converse: Act = (model, chance, step) => {
  const by = someone(model, chance)
  const other = someone(model, chance)
  if (other === by) return undefined
  const fields = { operation: 'conversation.open', members: [other.id], text: `${secretMark} hello ${step}` }
  return {
    by,
    fields,
    onAccepted: ({ conversation }, { conversations }) => {
      const { room } = (conversation ?? {}) as { room?: string }
      if (room !== undefined) conversations.push({ room, members: [by, other] })
    },
  }
}

const respond: Act = (model, chance) => {
  const found = chance.pick(model.conversations)
  if (found === undefined) return undefined
  const answer = chance.pick(['accept', 'decline', 'block'])!
  const fields = { operation: 'conversation.respond', room: found.room, data: data({ answer }) }
  return { by: chance.pick(found.members)!, fields }
}

const receiver: Act = (model, chance, step) => {
  const old = chance.below(2) === 0 ? undefined : chance.pick(model.receivers)
  if (old !== undefined) {
    const operation = chance.below(3) === 0 ? 'receiver.delete' : 'receiver.rotate'
    return { by: old.by, fields: { operation, target: old.id } }
  }
  const room = roomFor(model, chance, chance.below(2) === 0)
  const by = room === undefined ? someone(model, chance) : personWithAccess(room, model, chance)
  return {
    by,
    fields: {
      operation: 'receiver.create',
      data: data({ label: `${secretMark} ${step}`, ...(room && { post: true }) }),
      ...(room && { room: room.name }),
    },
    onAccepted: ({ receiver: made }, { receivers }) => {
      const { id } = (made ?? {}) as { id?: string }
      if (id !== undefined) receivers.push({ id, by })
    },
  }
}

const raiseLimits: Act = (model, chance) => {
  const target = chance.pick(model.people.slice(0, 3))!.id
  const fields =
    chance.below(3) === 0
      ? { operation: 'limits.revoke', target }
      : { operation: 'limits.grant', target, ttl: 60 + chance.below(4_000), data: data({ factor: 3 }) }
  return { by: model.operator, fields }
}

const erasedMax = 2

const erase: Act = (model, chance) => {
  const target = chance.pick(model.people.slice(1))!
  if (model.erased.size >= erasedMax) return undefined
  model.everSuspended.add(target)
  return {
    by: model.operator,
    fields: { operation: 'identity.erase', target: target.id, reason: 'Its owner asked for it.' },
    onAccepted: (_, { erased }) => void erased.add(target),
  }
}

const asErased: Act = (model, chance, step) => {
  const by = chance.pick([...model.erased])
  if (by === undefined) return undefined
  const fields = { operation: 'post', room: 'lobby', text: `from who was erased ${step}` }
  return { by, fields, refusedAs: ['suspended'] }
}

const report: Act = (model, chance) => {
  const target = recent(model.posts, chance, ({ room }) => !model.isPrivate(room))
  if (target === undefined) return undefined
  return {
    by: someone(model, chance),
    fields: { operation: 'report', event_id: target.id, reason: 'noise' },
    onAccepted: (answer, { reports }) => {
      const { id } = (answer.report ?? {}) as { id?: string }
      if (id !== undefined) reports.push(id)
    },
  }
}

const resolveReport: Act = (model, chance) => {
  const id = chance.pick(model.reports)
  if (id === undefined) return undefined
  const fields = { operation: 'report.resolve', target: id, data: data({ action: 'dismissed' }) }
  return { by: model.operator, fields }
}

// ---- what has to be refused, or to be answered as before

/** The same bytes again: the same answer, and nothing happens. */
const retry: Act = (model, chance) => {
  const old = recent(model.sent, chance, ({ standing }) => standing === 'accepted')
  return old === undefined ? undefined : { by: old.by, fields: old.fields, resend: old }
}

/** Seconds for which a board certainly remembers a request id, and a nonce. */
const requestRemembered = 80_000
const nonceRemembered = 500

function withRequestId(model: Model, chance: SeededRandom): Sent | undefined {
  return recent(model.sent, chance, ({ standing, fields, at }) => {
    return standing === 'accepted' && fields.request_id !== undefined && model.now - at < requestRemembered
  })
}

const sameRequest: Act = (model, chance) => {
  const old = withRequestId(model, chance)
  return old === undefined ? undefined : { by: old.by, fields: old.fields, sameRequestAs: old }
}

const otherContent: Act = (model, chance, step) => {
  const old = withRequestId(model, chance)
  if (old === undefined) return undefined
  const fields = { ...old.fields, text: `${old.fields.text} and more ${step}` }
  return { by: old.by, fields, refusedAs: ['request_id_reused'] }
}

const usedNonce: Act = (model, chance, step) => {
  const old = recent(model.sent, chance, ({ standing, fields, at }) => {
    return standing === 'accepted' && fields.operation === 'post' && model.now - at < nonceRemembered
  })
  if (old === undefined) return undefined
  const { nonce } = JSON.parse(old.body.toString()) as { nonce: string }
  const { request_id: _, ...fields } = old.fields
  return {
    by: old.by,
    nonce,
    fields: { ...fields, text: `another text ${step}` } as Fields,
    refusedAs: ['nonce_reused'],
  }
}

const intrude: Act = (model, chance, step) => {
  const room = roomFor(model, chance, true)
  const by = someone(model, chance)
  if (room === undefined || room.everAllowed.has(by) || by === model.operator) return undefined
  const read = chance.below(2) === 0
  return {
    by,
    fields: read
      ? { operation: 'events.list', room: room.name }
      : { operation: 'post', room: room.name, text: `${secretMark} from outside ${step}` },
    refusedAs: ['private_room', 'not_found', 'suspended'],
    holds: () => !room.everAllowed.has(by),
  }
}

const asSuspended: Act = (model, chance, step) => {
  const by = chance.pick([...model.suspended])
  if (by === undefined) return undefined
  const fields = { operation: 'post', room: 'lobby', text: `from a suspended key ${step}` }
  return { by, fields, refusedAs: ['suspended'], holds: () => model.suspended.has(by) }
}

const withOldKey: Act = (model, chance, step) => {
  const found = chance.pick(model.retired)
  if (found === undefined) return undefined
  const fields = { operation: 'post', room: 'lobby', text: `with a key of yesterday ${step}` }
  return { by: found.person, key: found.key, fields, refusedAs: ['key_rotated'] }
}

const asEndedDelegate: Act = (model, chance, step) => {
  const found = chance.pick(model.delegates.filter(({ isOver, until }) => isOver || until < model.now))
  if (found === undefined) return undefined
  const fields = { operation: 'post', room: 'lobby', text: `by who was a delegate ${step}` }
  return { by: found.person, key: found.name, fields, refusedAs: ['forbidden', 'key_rotated', 'suspended'] }
}

const ownVote: Act = (model, chance) => {
  const target = recent(model.posts, chance, () => true)
  if (target === undefined) return undefined
  const fields = { operation: 'vote', event_id: target.id, data: data({ value: 1 }) }
  const refusedAs = ['forbidden', 'private_room', 'not_found', 'suspended', 'wrong_state', 'room_write_restricted']
  return { by: target.by, fields, refusedAs }
}

const overdraw: Act = (model, chance) => {
  const fields = { operation: 'credit.transfer', target: model.operator.id, amount: 1_000_000 }
  return { by: chance.pick(model.people.slice(1))!, fields, refusedAs: ['insufficient_credits', 'suspended'] }
}

const grantByAnyone: Act = (model, chance) => {
  const by = chance.pick(model.people.slice(1))!
  const fields = { operation: 'credit.grant', target: by.id, amount: 5 }
  return { by, fields, refusedAs: ['forbidden', 'suspended'] }
}

const roleByAnyone: Act = (model, chance) => {
  const room = roomFor(model, chance, true)
  // A member, who sees the room, or an outsider.
  const by = room !== undefined && chance.below(3) > 0 ? chance.pick([...room.everAllowed])! : someone(model, chance)
  if (room === undefined || room.mayOwn.has(by) || by === model.operator) return undefined
  const fields = { operation: 'room.member.add', room: room.name, target: by.id }
  return { by, fields, refusedAs: ['forbidden', 'private_room', 'not_found', 'suspended'] }
}

const judgeByAnyone: Act = (model, chance) => {
  const work = recent(model.works, chance, ({ state }) => state === 'submitted' || state === 'rejected')
  const by = chance.below(2) === 0 ? work?.worker : someone(model, chance)
  if (work === undefined || by === undefined || work.requester === by) return undefined
  const operation = chance.pick(['work.accept', 'work.reject', 'work.revise'])!
  const more = operation === 'work.accept' ? {} : { reason: 'another was to say it' }
  const refusedAs = ['not_the_reviewer', 'not_found', 'private_room', 'wrong_state', 'forbidden', 'suspended']
  return { by, fields: { operation, event_id: work.id, ...more }, refusedAs }
}

export type Kind = { readonly weight: number; readonly act: Act }

const hooksMax = 4
const otherKinds = ['reply', 'mention', 'inbox.item', 'work.update', 'document.written', 'log.checkpoint']

const createHook: Act = (model, chance, step) => {
  const living = [...model.hooks.values()].filter(({ mayEnd }) => !mayEnd)
  if (living.length >= hooksMax) return undefined
  const room = chance.below(4) === 0 ? undefined : roomFor(model, chance, chance.below(3) === 0)
  const by = room === undefined ? someone(model, chance) : personWithAccess(room, model, chance)
  const kinds = room === undefined ? [chance.pick(otherKinds)] : ['room.post']
  const url = `https://target-${chance.below(3)}.example/${step}`
  return { by, fields: { operation: 'webhook.create', data: data({ url, kinds, room: room?.name }) } }
}

const deleteHook: Act = (model, chance) => {
  const hook = chance.pick([...model.hooks.values()].filter(({ mayEnd }) => !mayEnd))
  if (hook === undefined) return undefined
  hook.mayEnd = true
  const onAccepted = (_: unknown, { sent }: Model) => {
    hook.endedAt ??= sent.size
  }
  return { by: hook.by, fields: { operation: 'webhook.delete', target: hook.id }, onAccepted }
}

/** Resumes a suspended webhook, or one that waits for its next attempt. */
const redeliver: Act = (model, chance) => {
  const hook = chance.pick([...model.hooks.values()])
  return hook && { by: hook.by, fields: { operation: 'webhook.redeliver', target: hook.id } }
}

/** Acts for which a board uses a file that only this machine has. */
export const deliveryActs: ReadonlySet<string> = new Set(['create a webhook', 'delete a webhook', 'resume a webhook'])

/** By name, with their relative frequencies. */
export const acts: Readonly<Record<string, Kind>> = {
  post: { weight: 160, act: post },
  'private post': { weight: 60, act: privatePost },
  reply: { weight: 60, act: reply },
  edit: { weight: 30, act: edit },
  'post for a while': { weight: 6, act: expiringPost },
  'post with a file': { weight: 10, act: postWithFile },
  redact: { weight: 10, act: onPost('event.redact', { reason: 'a password' }, true, recordRedaction) },
  hide: { weight: 8, act: onPost('room.hide', { reason: 'off topic' }, true) },
  'restore a post': { weight: 6, act: onPost('room.restore', { reason: 'on topic' }, false) },
  vote: { weight: 30, act: vote },
  'create a room': { weight: 14, act: createRoom },
  'add a member': { weight: 10, act: changeRole('room.member.add') },
  'remove a member': { weight: 6, act: changeRole('room.member.remove') },
  'make a moderator': { weight: 5, act: changeRole('room.moderator.add') },
  'remove a moderator': { weight: 3, act: changeRole('room.moderator.remove') },
  'give a room away': { weight: 2, act: transferRoom },
  join: { weight: 6, act: ownRole('room.join') },
  leave: { weight: 4, act: ownRole('room.leave') },
  invite: { weight: 5, act: invite },
  'accept an invite': { weight: 4, act: acceptInvite },
  policy: { weight: 4, act: policy },
  ban: { weight: 3, act: ban },
  grant: { weight: 14, act: grant },
  transfer: { weight: 20, act: transfer },
  'create a work': { weight: 24, act: createWork },
  claim: { weight: 34, act: claimWork },
  result: { weight: 30, act: resultOfWork },
  submit: { weight: 34, act: submitWork },
  renew: { weight: 4, act: byWorker('work.renew', () => ({ ttl: 1_200 })) },
  release: { weight: 3, act: byWorker('work.release') },
  dispute: { weight: 8, act: byWorker('work.dispute', () => ({ reason: 'it was all there' })) },
  concede: { weight: 3, act: byWorker('work.concede') },
  accept: { weight: 8, act: byReviewer('work.accept') },
  reject: { weight: 8, act: byReviewer('work.reject', { reason: 'none of it is what was asked' }) },
  revise: { weight: 4, act: byReviewer('work.revise', { reason: 'the second one is missing' }) },
  cancel: { weight: 3, act: byReviewer('work.cancel') },
  raise: { weight: 4, act: byReviewer('work.raise', { amount: 3 }) },
  reopen: { weight: 3, act: byReviewer('work.reopen') },
  'edit a request': { weight: 4, act: byReviewer('work.edit', { text: 'another request' }) },
  rule: { weight: 8, act: rule },
  'create a document': { weight: 10, act: createDoc },
  'write a document': { weight: 16, act: writeDoc },
  'delete a document': { weight: 3, act: deleteDoc },
  'put a file': { weight: 8, act: putFile },
  'delete a file': { weight: 4, act: deleteFile },
  'take a file down': { weight: 2, act: takeFileDown },
  'register a handle': { weight: 8, act: handle },
  profile: { weight: 4, act: profile },
  'rotate a key': { weight: 6, act: rotate },
  suspend: { weight: 4, act: suspend },
  erase: { weight: 1, act: erase },
  'post when erased': { weight: 3, act: asErased },
  'raise limits': { weight: 3, act: raiseLimits },
  'receive URL': { weight: 6, act: receiver },
  unsuspend: { weight: 5, act: unsuspend },
  pin: { weight: 4, act: moderate('pin') },
  lock: { weight: 4, act: moderate('lock') },
  delegate: { weight: 6, act: delegate },
  'post as a delegate': { weight: 10, act: postAsDelegate },
  'revoke a delegation': { weight: 4, act: revoke },
  follow: { weight: 6, act: follow },
  'follow a thread': { weight: 5, act: followThread },
  mute: { weight: 4, act: mute },
  'say what was seen': { weight: 5, act: seen },
  'move a thread': { weight: 4, act: move },
  converse: { weight: 6, act: converse },
  'answer a conversation': { weight: 4, act: respond },
  report: { weight: 3, act: report },
  'resolve a report': { weight: 3, act: resolveReport },
  'create a webhook': { weight: 8, act: createHook },
  'delete a webhook': { weight: 2, act: deleteHook },
  'resume a webhook': { weight: 2, act: redeliver },
  retry: { weight: 40, act: retry },
  'same request id': { weight: 12, act: sameRequest },
  'other content with a request id': { weight: 8, act: otherContent },
  'used nonce': { weight: 8, act: usedNonce },
  intrude: { weight: 10, act: intrude },
  'post while suspended': { weight: 6, act: asSuspended },
  'post with an old key': { weight: 6, act: withOldKey },
  'post after a delegation': { weight: 12, act: asEndedDelegate },
  'reply in a locked thread': { weight: 6, act: lockedReply },
  'vote on an own post': { weight: 5, act: ownVote },
  'transfer too much': { weight: 5, act: overdraw },
  'grant without the right': { weight: 5, act: grantByAnyone },
  'add a member without the right': { weight: 5, act: roleByAnyone },
  "judge another's work": { weight: 40, act: judgeByAnyone },
}
