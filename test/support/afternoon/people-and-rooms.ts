/**
 * Who is on the board that afternoon, and where: 200 people, 20 public rooms and 10 private ones. Every text of a private room, and its
 * name, contains the canary word: wherever a stranger reads it, something has leaked.
 */
import type { Signer } from '../../../src/cli/sign.ts'
import { person } from '../client.ts'

export const canary = 'canary'

export type Room = {
  readonly name: string
  readonly isPrivate: boolean
  /** Numbers of people. Absent: the operator runs it. */
  readonly owner?: number
  readonly moderator?: number
  /** Members from the beginning to the end. */
  readonly core: readonly number[]
  /** Members now and then, as the owner likes. */
  readonly guests: readonly number[]
  /** Only members write. */
  readonly forMembers: boolean
  readonly isArchived: boolean
}

export const people: readonly Signer[] = Array.from({ length: 200 }, (_, n) => person(`afternoon ${n}`))
export const everybody: readonly number[] = people.map((_, n) => n)
export const numberOf: ReadonlyMap<string, number> = new Map(people.map(({ id }, n) => [id, n]))

export const operator = 0
/** These have a handle. */
export const isNamed = (who: number): boolean => who >= 1 && who < 40
export const handleOf = (who: number): string => `p-${who}`
/** These never act outside their private room. */
export const isSecretive = (who: number): boolean => who >= 190
/** A reader who is in no private room. */
export const stranger = 30

const range = (from: number, count: number): number[] => Array.from({ length: count }, (_, n) => from + n)

const openRooms: readonly Room[] = range(0, 20).map((n) => ({
  name: n === 19 ? 'post-office' : `hall-${n}`,
  isPrivate: false,
  ...(n < 16 || n === 19 ? { owner: 1 + n, moderator: 21 + n } : {}),
  core: [],
  guests: [],
  forMembers: n === 3,
  isArchived: n !== 5,
}))

const memberRooms: readonly Room[] = range(0, 10).map((n) => ({
  name: `${canary}-den-${n}`,
  isPrivate: true,
  owner: 40 + n,
  moderator: 50 + n,
  core: [50 + n, 60 + n, 190 + n, ...range(100 + n * 9, 5)],
  guests: range(105 + n * 9, 4),
  forMembers: true,
  isArchived: true,
}))

export const rooms: readonly Room[] = [...openRooms, ...memberRooms]
export const roomOf: ReadonlyMap<string, Room> = new Map(rooms.map((room) => [room.name, room]))
/** Where people post; into the other one the board posts items of a receive URL. */
export const publicRooms: readonly Room[] = openRooms.slice(0, 19)
export const privateRooms: readonly Room[] = memberRooms
export const receiverRoom: Room = openRooms[19]!

/** Who hides and restores there. */
export function moderatorsOf({ isPrivate, owner, moderator }: Room): number[] {
  return [owner, moderator, isPrivate ? undefined : operator].filter((who) => who !== undefined)
}
