/** What people do all afternoon in rooms: each act does one thing, at random, and records its outcome. */
import { isDeepStrictEqual } from 'node:util'
import type { SentEvent } from './history.ts'
import { everybody, moderatorsOf, operator, people, privateRooms, publicRooms, type Room } from './people-and-rooms.ts'
import { changeRoom, publicPeople } from './setup.ts'
import type { Random, World } from './world.ts'

export type Act = (world: World, random: Random) => Promise<unknown>

const pages = ['main', 'main', 'side', 'plans']

/** A room, some of them busier than others. */
function anyRoom(random: Random): Room {
  if (random(4) === 0) return privateRooms[Math.min(random(10), random(10))]!
  return publicRooms[Math.min(random(19), random(19))]!
}

function whoMayPost({ isPrivate, owner, core, guests }: Room): readonly number[] {
  return isPrivate ? [owner!, ...core, ...guests] : publicPeople
}

/** A post there, more likely a new one. */
function anyEvent(
  world: World,
  random: Random,
  room: Room,
  fits: (posted: SentEvent) => boolean = () => true,
): SentEvent | undefined {
  const list = world.history.byRoom.get(room.name)!
  for (let tries = 0; tries < 6; tries++) {
    const found = list[list.length - 1 - random(random(3) === 0 ? list.length : Math.min(list.length, 30))]
    if (found !== undefined && fits(found)) return found
  }
  return undefined
}

/** Refusals that a person may get in a room because of their role there; [] if they may act, undefined if either is possible. */
type Standing = { readonly codes: readonly string[]; readonly isSure: () => boolean; readonly isIn: boolean }

function standingOf(world: World, room: Room, who: number): Standing {
  if (room.isPrivate) {
    const now = world.standing(room, who)
    const { isIn, isChanging, changes } = now
    const isSure = () => !isChanging && !now.isChanging && now.changes === changes
    return { codes: ['private_room', 'not_found'], isSure, isIn }
  }
  const isIn = !room.forMembers || room.owner === who || world.history.members.get(room.name)!.has(who)
  return { codes: ['room_write_restricted', 'room_reply_restricted'], isSure: () => true, isIn }
}

function checkStanding({ isSure, isIn }: Standing, wasLetIn: boolean, what: string): void {
  if (isSure() && isIn !== wasLetIn) throw new Error(`${what}: ${isIn ? 'a member was refused' : 'a stranger got in'}`)
}

const post: Act = async (world, random) => {
  const room = anyRoom(random)
  await world.with(random, whoMayPost(room), async (who) => {
    const standing = standingOf(world, room, who)
    const target = random(5) < 3 ? anyEvent(world, random, room) : undefined
    const fields = {
      text: world.text(random, room),
      page: pages[random(pages.length)]!,
      ...(random(5) === 0 ? { kind: 'request' } : {}),
      ...(target === undefined ? {} : { reply_to: target.id }),
      ...(random(10) === 0 ? { to: people[random(190)]!.id } : {}),
    }
    const posted = await world.post(who, room, fields, standing.codes)
    checkStanding(standing, posted !== undefined, `post into ${room.name} by ${who}`)
  })
}

const edit: Act = async (world, random) => {
  const room = anyRoom(random)
  await world.with(random, whoMayPost(room), async (who) => {
    const mine = world.history.byRoom.get(room.name)!.filter(({ by, original }) => by === who && original === undefined)
    const original = mine[mine.length - 1 - random(Math.min(mine.length, 4))]
    if (original === undefined) return
    const edits = world.history.edits.get(original.id) ?? []
    const isOld = edits.length > 1 && random(6) === 0
    const named = isOld ? edits[0]! : random(2) === 0 ? original : world.history.newest(original)
    const data = JSON.stringify({ schema: 1, supersedes: named.id })
    const standing = standingOf(world, room, who)
    // A closed text, a room that removed the person, or a replaced version: in each case it has no effect.
    const codes = ['wrong_state', ...standing.codes, ...(isOld ? ['conflict'] : [])]
    const made = await world.post(who, room, { text: world.text(random, room), data }, codes)
    if (made !== undefined && isOld) throw new Error('a version that was replaced was replaced again')
  })
}

/** Guests do not vote: after their removal a vote of theirs is not found when a kill makes them send it again. */
const vote: Act = async (world, random) => {
  const room = anyRoom(random)
  const voters = whoMayPost(room).filter((who) => !room.guests.includes(who))
  await world.with(random, voters, async (who) => {
    const posted = anyEvent(world, random, room)
    if (posted === undefined) return
    const value = [1, 1, -1, 0][random(4)]!
    const isOwn = posted.by === who
    const codes = ['wrong_state', ...(isOwn ? ['forbidden'] : [])]
    const fields = { operation: 'vote', event_id: posted.id, data: JSON.stringify({ schema: 1, value }) }
    if ((await world.run(who, fields, codes)) === undefined) return
    if (isOwn) throw new Error(`${who} voted for himself`)
    const { votes } = world.history
    const original = posted.original ?? posted.id
    votes.set(original, (votes.get(original) ?? new Map()).set(who, value))
  })
}

const moderate: Act = async (world, random) => {
  const room = anyRoom(random)
  const op = (['room.hide', 'room.hide', 'room.restore', 'room.restore', 'event.redact'] as const)[random(5)]!
  const posted = anyEvent(world, random, room)
  if (posted === undefined) return
  const author = op === 'event.redact' && random(2) === 0 && !room.guests.includes(posted.by)
  await world.with(random, author ? [posted.by] : moderatorsOf(room), async (who) => {
    const reason = `${room.isPrivate ? 'canary' : 'open'} reason ${random(1e9)}`
    const codes = ['wrong_state', 'forbidden']
    const outcome = await world.run(who, { operation: op, event_id: posted.id, reason }, codes)
    if (outcome === undefined) return
    const { signed, sent, answered } = outcome
    world.history.moderation.push({ id: signed.eventId, op, room, by: who, target: posted.id, reason, sent, answered })
  })
}

const joinOrLeave: Act = (world, random) =>
  world.with(random, publicPeople, async (who) => {
    const room = publicRooms[random(4) === 0 ? 3 : random(publicRooms.length)]!
    const members = world.history.members.get(room.name)!
    if (room.owner === who || room.moderator === who) return
    const isMember = members.has(who)
    const joins = random(4) > 0
    const codes = joins === isMember ? [joins ? 'conflict' : 'wrong_state'] : []
    const done = await world.run(who, { operation: joins ? 'room.join' : 'room.leave', room: room.name }, codes)
    if (done === undefined) return
    if (joins === isMember) throw new Error(`${who} ${joins ? 'joined' : 'left'} ${room.name} twice`)
    if (joins) members.add(who)
    else members.delete(who)
  })

/** The owner of a private room admits or removes a guest. */
const invite: Act = async (world, random) => {
  const room = privateRooms[random(privateRooms.length)]!
  await world.with(random, [room.owner!], async (owner) => {
    const guest = room.guests[random(room.guests.length)]!
    const standing = world.standing(room, guest)
    const members = world.history.members.get(room.name)!
    standing.isChanging = true
    const op = standing.isIn ? 'room.member.remove' : 'room.member.add'
    await changeRoom(world, owner, room, op, { target: people[guest]!.id })
    standing.isIn = !standing.isIn
    standing.isChanging = false
    standing.changes++
    if (standing.isIn) members.add(guest)
    else members.delete(guest)
  })
}

/** Forbidden acts: each is refused, and has no effect. */
const actWithoutRights: Act = async (world, random) => {
  const secretRoom = privateRooms[random(privateRooms.length)]!
  const outside = everybody.filter(
    (who) => who !== secretRoom.owner && ![...secretRoom.core, ...secretRoom.guests].includes(who),
  )
  await world.with(random, outside, async (who) => {
    const secret = anyEvent(world, random, secretRoom)!
    const data = '{"schema":1,"value":1}'
    const publicRoom = publicRooms[random(publicRooms.length)]!
    const text = world.text(random, secretRoom)
    const attempts = [
      () => world.run(who, { operation: 'post', room: secretRoom.name, text }, ['private_room']),
      () => world.run(who, { operation: 'post', text, reply_to: secret.id }, ['not_found']),
      () =>
        world.run(who, { operation: 'post', room: publicRoom.name, text, reply_to: secret.id }, [
          'not_found',
          'room_reply_restricted',
        ]),
      () => world.run(who, { operation: 'vote', event_id: secret.id, data }, ['not_found']),
      () => world.run(who, { operation: 'room.hide', event_id: secret.id, reason: 'canary' }, ['not_found']),
      () => world.run(who, { operation: 'event.redact', event_id: secret.id, reason: 'canary' }, ['not_found']),
      () => world.run(who, { operation: 'room.join', room: secretRoom.name }, ['private_room']),
      () => world.run(who, { operation: 'room.create', room: secretRoom.name }, ['name_taken']),
      () =>
        world.run(who, { operation: 'docs.create', room: secretRoom.name, text, data: '{"schema":1,"title":"x"}' }, [
          'private_room',
        ]),
    ]
    if ((await attempts[random(attempts.length)]!()) !== undefined) throw new Error(`${who} is in ${secretRoom.name}`)
  })
  const room = publicRooms[random(publicRooms.length)]!
  const posted = anyEvent(world, random, room)
  const powerless = publicPeople.filter(
    (who) => who !== posted?.by && !moderatorsOf(room).includes(who) && who !== operator,
  )
  if (posted === undefined) return
  await world.with(random, powerless, async (who) => {
    const op = ['room.hide', 'room.restore', 'event.redact'][random(3)]!
    const done = await world.run(who, { operation: op, event_id: posted.id, reason: 'canary' }, ['forbidden'])
    if (done !== undefined) throw new Error(`${who} moderated ${room.name}`)
  })
}

/** The bytes of an acknowledged command, once more: the same outcome, and no second effect. */
const repeat: Act = async (world, random) => {
  const posted = anyEvent(world, random, anyRoom(random))
  if (posted === undefined) return
  const { result } = await world.restartingBoard.retry((client) => client.send(posted.body))
  const { status, data, text } = result
  const { event, receipt } = data
  const told = [status, receipt?.duplicate, receipt?.event_id, event?.seq, event?.created_at, receipt?.log_index]
  const expected = [200, true, posted.id, posted.seq, posted.at, posted.leaf]
  if (!isDeepStrictEqual(told, expected)) throw new Error(`${JSON.stringify(expected)}, sent again: ${text}`)
  world.history.repeated++
}

/** A request made twice under one request id, from two places at once: it is one post. */
const twice: Act = async (world, random) => {
  const room = publicRooms[4 + random(publicRooms.length - 4)]!
  await world.with(random, publicPeople, async (who) => {
    const fields = { text: world.text(random, room), request_id: `request ${random(1e9)}` }
    const command = { operation: 'post', room: room.name, ...fields }
    const signed = [0, 1].map(() => world.restartingBoard.client.sign(people[who]!, command))
    const outcomes = await Promise.all(signed.map((each) => world.restartingBoard.send(each)))
    const ids = outcomes.map(({ answer }) => answer.data.event_id)
    if (ids[0] === undefined || ids[0] !== ids[1])
      throw new Error(`one request, two outcomes: ${outcomes.map(({ answer }) => answer.text).join(' ')}`)
    const first = outcomes.find((each) => each.signed.eventId === ids[0])!
    // Its id tells which of them made it; the event existed once the first of the two was answered.
    const answered = Math.min(...outcomes.map((each) => each.answered))
    world.history.acknowledged++
    world.recordEvent(who, room, fields, { ...first, tries: 2, answered })
  })
}

/** The relative frequency of each. */
export const roomActs: readonly (readonly [weight: number, act: Act])[] = [
  [46, post],
  [10, edit],
  [14, vote],
  [12, moderate],
  [5, joinOrLeave],
  [2, invite],
  [4, actWithoutRights],
  [4, repeat],
  [2, twice],
]
