/** The beginning of the afternoon: handles, rooms and their moderators, a first post in each, documents, receive URLs. */
import { createFields, docOf } from '../documents.ts'
import type { Doc } from './history.ts'
import {
  canary,
  everybody,
  handleOf,
  isNamed,
  isSecretive,
  operator,
  people,
  privateRooms,
  publicRooms,
  type Room,
  receiverRoom,
  rooms,
} from './people-and-rooms.ts'
import type { World } from './world.ts'

export async function setUp(world: World): Promise<void> {
  await Promise.all(
    everybody.filter(isNamed).map((who) => world.run(who, { operation: 'identity.register', handle: handleOf(who) })),
  )
  await Promise.all(rooms.map((room) => createRoom(world, room)))
  await Promise.all(documentsOf().map(([owner, room, isUnlisted]) => createDocument(world, owner, room, isUnlisted)))
  const [first, second] = [publicRooms[0]!.owner!, privateRooms[0]!.owner!]
  for (const [owner, dedupe, posts] of [
    [first, true, false],
    [first, false, false],
    [second, true, false],
    [second, false, false],
    [receiverRoom.owner!, true, true],
  ] as const)
    await createReceiver(world, owner, dedupe, posts)
}

async function createRoom(world: World, room: Room): Promise<void> {
  const { name, isPrivate, owner, moderator, core, forMembers, isArchived } = room
  const members = world.history.members.get(name)!
  if (owner !== undefined) {
    const list = core.map((who) => people[who]!.id)
    const text = isPrivate ? `${canary} about` : 'for all'
    await world.run(owner, {
      operation: 'room.create',
      room: name,
      visibility: isPrivate ? 'private' : 'public',
      members: list,
      text,
    })
    for (const who of core) members.add(who)
    await changeRoom(world, owner, room, 'room.moderator.add', { target: people[moderator!]!.id })
    members.add(moderator!)
    if (!isPrivate && (forMembers || !isArchived)) {
      const policy = forMembers ? { write: 'members', reply: 'members' } : { archive: false }
      await changeRoom(world, owner, room, 'room.policy.set', { data: JSON.stringify(policy) })
    }
  }
  if (room !== receiverRoom)
    await world.post(owner ?? operator, room, { text: `${isPrivate ? canary : 'open'} first word` })
}

/** A change of a room that its moderation log shows. */
export async function changeRoom(
  world: World,
  by: number,
  room: Room,
  op: string,
  fields: { readonly target?: string; readonly data?: string; readonly reason?: string },
  codes: readonly string[] = [],
): Promise<boolean> {
  const outcome = await world.run(by, { operation: op, room: room.name, ...fields }, codes)
  if (outcome === undefined) return false
  const { signed, sent, answered } = outcome
  const { target, reason } = fields
  world.history.moderation.push({
    id: signed.eventId,
    op,
    room,
    by,
    sent,
    answered,
    ...(target === undefined ? {} : { target }),
    ...(reason === undefined ? {} : { reason }),
  })
  return true
}

/** Four in public rooms, two in private ones, one for anybody with its address. */
function documentsOf(): [owner: number, room: Room | undefined, isUnlisted: boolean][] {
  const ofRooms = [...publicRooms.slice(0, 3), publicRooms[6]!, ...privateRooms.slice(0, 2)]
  return [
    ...ofRooms.map((room): [number, Room, boolean] => [room.owner!, room, false]),
    [publicRooms[1]!.owner!, undefined, true],
  ]
}

const lines = 40

async function createDocument(world: World, owner: number, room: Room | undefined, isUnlisted: boolean): Promise<void> {
  const isPrivate = room?.isPrivate === true || isUnlisted
  const text = Array.from({ length: lines }, (_, n) => `${isPrivate ? canary : 'open'} line ${n}`).join('\n')
  const more = { ...(room === undefined ? {} : { room: room.name }), ...(isUnlisted ? { visibility: 'unlisted' } : {}) }
  const title = isPrivate ? `${canary} plan` : 'Plan'
  const outcome = (await world.run(owner, createFields(text, more, title)))!
  const { id, version_id, version } = docOf(outcome.answer)
  const { sent, answered } = outcome
  const first = { id: version_id, by: owner, base: 0, signedText: text, text, sent, answered }
  const doc: Doc = { id, owner, room, isUnlisted, versions: new Map([[version, first]]) }
  world.history.docs.push(doc)
}

async function createReceiver(world: World, owner: number, dedupe: boolean, posts: boolean): Promise<void> {
  const data = JSON.stringify({
    schema: 1,
    label: posts ? 'post' : `${canary} label`,
    ...(dedupe ? { dedupe_header: 'X-Delivery-Id' } : {}),
    ...(posts ? { post: true } : {}),
  })
  const outcome = await world.run(owner, {
    operation: 'receiver.create',
    data,
    ...(posts ? { room: receiverRoom.name } : {}),
  })
  const { receiver } = outcome!.answer.data as unknown as { receiver: { id: string; url: string } }
  const { id, url } = receiver
  world.history.receivers.push({ id, url, owner, dedupe, posts, items: new Map(), unknown: new Set() })
}

/** People who act in public. */
export const publicPeople: readonly number[] = everybody.filter((who) => !isSecretive(who))
