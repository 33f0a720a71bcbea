/**
 * Board-wide moderation: files taken down everywhere, and the place of each public act of moderation, in rooms and by
 * operators. Memory holds only the place of the signed record; who, what and why is read from there.
 */
import { hex } from '../kernel/hex.ts'
import type { Projection, RecordPlace } from '../records/core.ts'
import { formatEntry } from '../records/entry.ts'
import { ActsOf, type FactRecord } from '../records/record.ts'
import { isRoomModeration, type Kept } from '../rooms/rules.ts'

/** Facts of a takedown. */
export type TakedownFacts = { readonly target: string; readonly reason: string; readonly ended?: true }

export const takedowns = new ActsOf<TakedownFacts>('blob.takedown')

/** A file that no room serves and no one may upload. */
type Takedown = { readonly reason: string /** Unix seconds. */; readonly at: number }

/** An act, by the id (32 hex) of its command. `leaf`: index across all public logs (in the feed only). */
export type ModerationAct = Kept & { readonly id: string; readonly leaf: number }

type Packed = readonly [
  takedowns: readonly (readonly [sha256: string, takedown: Takedown])[],
  acts: readonly (readonly [id: string, shard: number, seq: number, leaf: number])[],
]

/** Operator acts that concern no room. */
const ofOperators: ReadonlySet<string> = new Set([
  'identity.suspend',
  'identity.unsuspend',
  'identity.erase',
  'blob.takedown',
])

/** Whether an identity changed content of another identity. Authors may redact their own posts freely. */
export function isModeration(act: Pick<FactRecord, 'op' | 'facts' | 'by'>): boolean {
  if (act.by === undefined) return false
  if (act.op === 'event.redact' && act.facts.by === 'author') return false
  return ofOperators.has(act.op) || isRoomModeration(act)
}

/** The entry in the public log of an act of moderation. `event` (32 hex) and `command` (64 hex) are those of its command. */
export function moderationEntry(
  { op, room, at, facts: { target, id } }: Pick<FactRecord, 'op' | 'room' | 'at' | 'facts'>,
  { event, command }: { readonly event: string; readonly command: string },
): Buffer {
  const subject = id instanceof Uint8Array ? hex(id) : target
  return formatEntry({
    kind: 'moderate',
    event,
    room: room.startsWith('@') ? '-' : room,
    seq: '-',
    time: at,
    command,
    ...(typeof subject === 'string' ? { target: subject } : {}),
    action: op,
  })
}

export class BoardModeration implements Projection {
  readonly acts: Projection['acts'] = {
    'blob.takedown': (act) => this.#takeDown(act),
  }
  /** Only the feed shows the log: only it knows what is public in every room. */
  readonly #isShowing: boolean
  readonly #takedowns = new Map<string, Takedown>()
  /** Oldest first. */
  readonly #log: ModerationAct[] = []
  readonly #byId = new Map<string, ModerationAct>()

  constructor(role: 'deciding' | 'reading') {
    this.#isShowing = role === 'reading'
  }

  takedown(sha256: string): Takedown | undefined {
    return this.#takedowns.get(sha256)
  }

  /** SHA-256 of every file that is taken down. */
  get takenDown(): IterableIterator<string> {
    return this.#takedowns.keys()
  }

  get length(): number {
    return this.#log.length
  }

  /** Entry n, from 1. */
  entry(n: number): ModerationAct {
    return this.#log[n - 1]!
  }

  actBy(id: string): ModerationAct | undefined {
    return this.#byId.get(id)
  }

  onAct(act: FactRecord, { id, shard, seq, leaf }: RecordPlace): void {
    if (this.#isShowing && isModeration(act)) this.#keep({ id: hex(id), shard, seq, leaf })
  }

  pack(): Packed {
    return [[...this.#takedowns], this.#log.map(({ id, shard, seq, leaf }) => [id, shard, seq, leaf])]
  }

  restore([takedowns, acts]: Packed): void {
    for (const [sha256, takedown] of takedowns) this.#takedowns.set(sha256, takedown)
    for (const [id, shard, seq, leaf] of acts) this.#keep({ id, shard, seq, leaf })
  }

  #keep(act: ModerationAct): void {
    this.#log.push(act)
    this.#byId.set(act.id, act)
  }

  #takeDown({ at, facts }: FactRecord<TakedownFacts>): void {
    const { target, reason, ended } = facts
    if (ended === true) this.#takedowns.delete(target)
    else this.#takedowns.set(target, { reason, at })
  }
}
