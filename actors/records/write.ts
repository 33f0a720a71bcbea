/**
 * A write on its way to an actor: the letter, the decision, and the checks that run before any decider (retries, nonces,
 * request ids, time window).
 */

import { createHash } from 'node:crypto'
import { Damage } from '../../storage/disk.ts'
import type { Frame } from '../../storage/journal.ts'
import type { ActorRefusal } from '../kernel/refusals.ts'
import type { Board } from './board.ts'
import { bytesOf, type Columns, grown, type Kept } from './columns.ts'
import type { Parts } from './core.ts'
import { IdTable, none, type PackedIds } from './id-table.ts'
import {
  type BoardRecord,
  commandIn,
  commandSha,
  conversationPrefix,
  type FactRecord,
  type Facts,
  frameKey,
  fromFrame,
  RecordType,
  requestsOfWork,
  type Signed,
  useMark,
} from './record.ts'
import { fingerprint, freshSeeds, type PackedMemory, RetryMemory, type Seeds, type Shelf } from './retry-memory.ts'

/** The list of operations (actors/operations.ts), which imports the deciders, adds its member here. */
// biome-ignore lint/suspicious/noEmptyInterface: the list of operations declares its member.
export interface LetterNames {}
/** The names that a letter may have. */
type LetterName = LetterNames extends { readonly any: infer Name extends string } ? Name : string

/** The table of deciders (actors/deciders.ts) adds its members here. */
// biome-ignore lint/suspicious/noEmptyInterface: the table of deciders declares its members.
export interface DeciderTable {}
/** The arguments of the decider with this name. */
export type ArgsOf<Name extends string> = Name extends keyof DeciderTable
  ? DeciderTable[Name] extends (situation: never, letter: WriteLetter<infer Args>) => unknown
    ? Args
    : object
  : object

/** The reply of that decider when it accepts. */
export type ReplyOf<Name extends string> = Name extends keyof DeciderTable
  ? DeciderTable[Name] extends (...asked: never) => infer Decided
    ? Extract<Decided, { readonly ok: true }> extends { readonly reply: infer Reply extends Facts }
      ? Reply
      : never
    : never
  : Facts

/** What the main thread sends to an actor: a verified command. Byte fields are raw; `author` is 64 hex. */
export type WriteLetter<Args extends object = object, Reply extends Facts = Facts> = {
  readonly op: LetterName
  /** The actor that decides: a room's name, or `@registry`. */
  readonly to: string
  /** First 16 bytes of `sha`: the event id. */
  readonly id: Uint8Array
  /** SHA-256 of the signing bytes. */
  readonly sha: Uint8Array
  readonly author: string
  readonly by: Signed
  readonly timestamp: number
  readonly nonce: string
  readonly requestId: string
  readonly via: string
  /** Seconds to wait if a limit is exhausted, else 0. The actor checks it, because a retry is never refused for a limit. */
  readonly limited: number
  /** Multiplies the signer's share of the retry memory; 1 if absent. */
  readonly factor?: number
  /** This key was rotated away. The actor checks it, because a retry of what the key signed before is still a retry. */
  readonly rotated: boolean
  readonly suspended: boolean
  /**
   * Present if a delegate signed. `isOver`: the delegation has ended. `expires`: when it ends on its own (Unix seconds; a
   * letter may wait until then). `isPublished`: the public log has it. `moderates`: it covers moderating.
   */
  readonly delegated?: {
    readonly isOver: boolean
    readonly expires: number
    readonly isPublished: boolean
    readonly moderates: boolean
    /** It covers reading private content. */
    readonly reads: boolean
  }
  /** The operator of this board signed. */
  readonly operator: boolean
  /** The arguments for its decider. */
  readonly args: Args
  /** The type of its reply, for the compiler only: no letter has this property. */
  '~reply'?(reply: Reply): void
}

export type Planned = {
  readonly record: BoardRecord
  readonly key: Uint8Array
  readonly isPublic: boolean
  /** Its leaves in the public log, in the form that records store. */
  readonly entries?: readonly Uint8Array[]
}

/** The usual reply: when the letter was decided, and the facts of the record. */
export type ActReply<Given extends object = object> = {
  readonly at: number
  readonly isPublic: boolean
  readonly facts: Given
}

/** The records are written, and the sender gets the reply once they are on disk. */
export type Accepted<Reply extends object = Facts> = {
  readonly ok: true
  readonly records: readonly Planned[]
  readonly reply: Reply
  /** Another actor will publish something derived from it in the signer's name. */
  readonly leadsToPublic?: boolean
  /** The sender does not wait for the public log: the journal is enough. */
  readonly isAnsweredEarly?: true
}

export type Decision<Reply extends object = Facts> = Accepted<Reply> | Refused

export function accept<Reply extends object>(records: readonly Planned[], reply: Reply): Accepted<Reply> {
  return { ok: true, records, reply }
}

/** What a decider may read. Deciders are pure: same state, letter and time, same decision. */
export type Situation = {
  readonly state: Parts
  readonly board: Board
  /** Unix seconds; never decreases within one journal. */
  readonly now: number
  /** A record of this journal by its number, decided in this turn or earlier: for texts that no state holds. */
  readonly record: (seq: number) => BoardRecord
}

/** The result of `refuse`. */
export type Refused = { readonly ok: false; readonly refusal: ActorRefusal }

/** Decides a letter, with the arguments that it takes. */
export type Decider = (situation: Situation, letter: WriteLetter) => Decision
/** Deciders by the name of the operation, each with its own argument type. */
export type Deciders = Readonly<Record<string, (situation: Situation, letter: WriteLetter<never>) => Decision>>

export const delegationOver =
  'the delegation of this key has ended, and the key is permanently refused: sign with the key of the identity, or make a new delegation with delegation.create'

/** A refusal for the main thread, which knows the limit and whom it applies to. */
export const overLimitWords = 'this write is over a limit: wait retry_after seconds'

export const windowSeconds = 300
export const nonceSeconds = 600
export const requestSeconds = 86_400
/** How much the retry memory holds for one identity: request ids in 24 h, nonces in 600 s. Absent: unbounded. */
export type Shares = { readonly requestIds?: number; readonly nonces?: number }

/** A hint for a time that only makes sense in milliseconds or microseconds (as seconds it would be in the year 5138 or later). */
export function unitHint(time: number): string {
  if (time < 1e11) return ''
  const [unit, factor] = time < 1e14 ? ['milliseconds', 1_000] : ['microseconds', 1_000_000]
  return `; ${time} looks like ${unit}: divide it by ${factor}`
}

/** The board itself wrote this letter (src/command/ports.ts). */
export function isOfBoard({ via }: { readonly via: string }): boolean {
  return via === 'board'
}

/** The error for a command whose `timestamp` is too far from the clock (Unix seconds). */
export function staleTimestampMessage(timestamp: number, clock: number): string {
  return `timestamp must be within ${windowSeconds} s of the server's clock, which is ${clock} in Unix seconds${unitHint(timestamp)}`
}

/**
 * The same decision with other records before its own. Either all of them get to disk or none. A retry is answered from the
 * last one.
 */
export function preceded<Reply extends object>(first: readonly Planned[], decision: Accepted<Reply>): Accepted<Reply> {
  return { ...decision, records: [...first, ...decision.records] }
}

export function refuse(code: ActorRefusal['code'], message: string, field?: string, retryAfter?: number): Refused {
  const refusal: ActorRefusal = {
    code,
    message,
    ...(field === undefined ? {} : { field }),
    ...(retryAfter === undefined ? {} : { retryAfter }),
  }
  return { ok: false, refusal }
}

/** Turns damage found while judging into a refusal of this letter alone: nothing has changed yet. */
export function unlessDamaged(judge: () => Known | Decision, fault: (damage: Damage) => string): Known | Decision {
  try {
    return judge()
  } catch (error) {
    if (!(error instanceof Damage)) throw error
    return refuse('internal', fault(error))
  }
}

/** The values that may be used only once. */
type Use = 'nonce' | 'request'

/** A command that was accepted before: the place of its first record. */
export type Known = { readonly known: number }

export type PackedRetryGuard = readonly [
  Seeds,
  PackedMemory,
  PackedMemory,
  commands: PackedCommands,
  hasStubs: boolean,
  voided: readonly (readonly [seq: number, at: number])[],
]

/** Remembers the accepted writes of one journal and judges retries. */
export class RetryGuard {
  readonly #nonces: RetryMemory
  readonly #requests: RetryMemory
  readonly #commands = new Commands()
  /** Commands that were voided after being recorded, by record number, for as long as a request id is remembered. */
  readonly #voided = new Map<number, number>()
  #seeds: Seeds = freshSeeds()
  /** Replay found stubs. They are remembered by the marks of their nonces and request ids. */
  #hasStubs = false
  readonly #board: Board
  readonly #read: (seq: number) => Frame

  /** `shelf`: where tables go that do not fit in memory; without it, all stay in memory. */
  constructor(board: Board, read: (seq: number) => Frame, shares: Shares = {}, shelf?: Shelf) {
    this.#board = board
    this.#read = read
    const memory = (name: string, spanSeconds: number, share: number | undefined) =>
      new RetryMemory({
        // Tables with other seeds are useless; the name keeps them from being used.
        name: () => `${name}-${fingerprint(this.#seeds, 'tables', '', '').toString(36)}`,
        spanSeconds,
        ...(share === undefined ? {} : { share }),
        ...(shelf === undefined ? {} : { shelf }),
      })
    this.#nonces = memory('nonces', nonceSeconds, shares.nonces)
    this.#requests = memory('request-ids', requestSeconds, shares.requestIds)
  }

  /** Everything remembered, for a snapshot. */
  pack(columns: Columns): PackedRetryGuard {
    const [nonces, requests] = [this.#nonces.pack(columns), this.#requests.pack(columns)]
    return [this.#seeds, nonces, requests, this.#commands.pack(columns), this.#hasStubs, [...this.#voided]]
  }

  /** Restores what `pack` returned, at time `at` (Unix seconds). False if the shelf lacks a part; the guard is then unusable. */
  restore(
    [seeds, nonces, requests, commands, hasStubs, voided]: PackedRetryGuard,
    columns: Columns,
    at: number,
  ): boolean {
    this.#seeds = seeds
    this.#hasStubs = hasStubs
    this.#commands.restore(commands, columns)
    for (const [seq, at] of voided) this.#voided.set(seq, at)
    return this.#nonces.restore(nonces, columns, at) && this.#requests.restore(requests, columns, at)
  }

  /**
   * Voids the record of this command (32 hex): another actor, which had to be asked, refused it. A refusal consumes nothing, so
   * the command, its nonce and its request id may be used again.
   */
  forget(command: string, at: number): void {
    const id = Buffer.from(command, 'hex')
    const seq = this.#commands.get(id)
    if (seq === undefined) return
    this.#commands.set(id, forgotten)
    for (const [old, since] of this.#voided) {
      if (at - since < requestSeconds) break
      this.#voided.delete(old)
    }
    this.#voided.set(seq, at)
  }

  /**
   * Returns where the first answer to a retry is, a refusal, or undefined for a new command inside its time window. `now`
   * stamps records and never goes back; `wall` is the current clock.
   */
  judge(letter: WriteLetter, now: number, wall: number, isSuspended = letter.suspended): Known | Decision | undefined {
    const place = this.#place(letter)
    if (place !== undefined) {
      const same = commandSha(signedOf(this.#record(place))).equals(letter.sha)
      return same
        ? { known: place }
        : refuse('conflict', 'another command has the same first 128 bits of its hash: sign again with a fresh nonce')
    }
    if (this.#used('nonce', letter, now) !== undefined)
      return refuse(
        'nonce_reused',
        'this nonce was used for another command: sign again with a fresh one (16 random bytes)',
        'nonce',
      )
    const repeated = letter.requestId === '' ? undefined : this.#request(letter, now)
    if (repeated !== undefined) return repeated
    // Compare with the clock that clients see: `now` never goes back, so after a jump ahead it would refuse all writes. The
    // board's own letters carry the time of their cause, which it may learn late.
    if (!isOfBoard(letter) && Math.abs(wall - letter.timestamp) > windowSeconds) {
      return refuse('stale_timestamp', staleTimestampMessage(letter.timestamp, wall), 'timestamp')
    }
    if (letter.rotated)
      return refuse(
        'key_rotated',
        'this identity has moved to a new key, and the old one is refused: sign with the new one',
        'public_key',
      )
    if (letter.delegated !== undefined && (letter.delegated.isOver || now >= letter.delegated.expires))
      return refuse('forbidden', delegationOver, 'public_key')
    if (letter.limited > 0) return refuse('rate_limited', overLimitWords, undefined, letter.limited)
    if (isSuspended) return refuse('suspended', 'the operator of this board has suspended this identity')
    return this.#roomObjection(letter, now, wall)
  }

  /** Refuses an identity that has used up its share. The board's own letters have no share. */
  #roomObjection(letter: WriteLetter, now: number, wall: number): Decision | undefined {
    const owner = isOfBoard(letter) ? 0 : this.#owner(letter.author)
    const { factor } = letter
    const nonces = this.#nonces.roomAt(now, owner, factor)
    if (nonces > now) {
      const message = `this identity has reached the limit of nonces per ${nonceSeconds} s: wait retry_after seconds`
      return refuse('quota_exhausted', message, undefined, nonces - wall)
    }
    const requests = letter.requestId === '' ? now : this.#requests.roomAt(now, owner, factor)
    if (requests > now) {
      const hours = requestSeconds / 3_600
      const message = `this identity has reached the limit of request ids per ${hours} h: wait retry_after seconds, or leave request_id out`
      return refuse('quota_exhausted', message, 'request_id', requests - wall)
    }
    return undefined
  }

  #owner(author: string): number {
    return fingerprint(this.#seeds, 'o', author, '')
  }

  /** Called for every record, written or replayed, whose command may be retried. `seq`: its journal number. */
  remember(
    use: { to: string; author: string; nonce: string; requestId: string; id: Uint8Array; isEvent: boolean },
    seq: number,
    at: number,
  ): void {
    const owner = this.#owner(use.author)
    this.#nonces.add(fingerprint(this.#seeds, `n${use.to}`, use.author, use.nonce), seq, at, owner)
    if (use.requestId !== '')
      this.#requests.add(fingerprint(this.#seeds, `r${use.to}`, use.author, use.requestId), seq, at, owner)
    if (!use.isEvent) this.#commands.set(use.id, seq)
  }

  /** The same from the record alone, when a journal is replayed at time `now`. For older records only the id is remembered. */
  remind(frame: Frame, record: BoardRecord, author: string, now: number): void {
    const isEvent = 'seq' in record
    if (!('by' in record) || record.by === undefined) return
    // Older releases also stored the signed bytes with the room of a conversation; the accepted command is the act after it.
    if (record.type === RecordType.roomCreated && record.room.startsWith(conversationPrefix)) return
    if (now - record.at > requestSeconds) {
      if (!isEvent) this.#commands.set(frameKey(frame), frame.seq)
      return
    }
    // A stub from an older release does not have its nonce and request id.
    if (isDestroyed(record.by) && record.by.cut?.nonce === undefined) {
      if (!isEvent) this.#commands.set(frameKey(frame), frame.seq)
      return
    }
    const isStub = isDestroyed(record.by)
    this.#hasStubs ||= isStub
    const { operation, nonce, requestId } = isStub ? marksOf(record.by) : commandOf(record.by.signed)
    // The market accepted these and remembers them; the room received them in a letter from the board.
    if (isEvent && requestsOfWork.has(operation)) return
    this.remember({ to: record.room, author, nonce, requestId, id: frameKey(frame), isEvent }, frame.seq, record.at)
  }

  /** The actor that accepted the command with this id (32 hex). */
  acceptedBy(command: string): string | undefined {
    const { events, roomList } = this.#board
    const slot = events.find(Buffer.from(command, 'hex'))
    if (slot !== none) return roomList[events.room(slot)]!.name
    const seq = this.#commands.get(Buffer.from(command, 'hex'))
    return seq === undefined ? undefined : this.#record(seq).room
  }

  #place(letter: WriteLetter): number | undefined {
    const { id, to, timestamp } = letter
    const { events, roomList } = this.#board
    // A user's command is accepted only inside the window around its timestamp; double the window, for clock differences.
    const slot = events.find(id, isOfBoard(letter) ? 0 : timestamp - 2 * windowSeconds)
    // The post that a room made from a work.create is not the market's own record of that command.
    if (slot !== none && roomList[events.room(slot)]!.name === to) return events.place(slot)
    return this.#commands.get(id)
  }

  #request(letter: WriteLetter, now: number): Known | Decision | undefined {
    const seq = this.#used('request', letter, now)
    if (seq === undefined) return undefined
    const by = signedOf(this.#record(seq))
    if (!isDestroyed(by) && sameContent(by, letter.by)) return { known: seq }
    const what = isDestroyed(by) ? 'a text that has been removed since' : 'different content'
    const message = `this request_id was used for ${what} within 24 h: choose a fresh one`
    return refuse('request_id_reused', message, 'request_id')
  }

  /** The number of the record whose command used this nonce or request id recently and was not voided. */
  #used(use: Use, { to, author, nonce, requestId }: WriteLetter, now: number): number | undefined {
    const [memory, scope, seconds, text] =
      use === 'nonce'
        ? ([this.#nonces, `n${to}`, nonceSeconds, nonce] as const)
        : ([this.#requests, `r${to}`, requestSeconds, requestId] as const)
    let mark: Buffer | undefined
    const markOf = () => (mark ??= useMark(use, to, author, text))
    let found: number | undefined
    const take = (seq: number): boolean => {
      if (this.#voided.has(seq)) return false
      const record = this.#record(seq)
      const by = signedOf(record)
      if (authorOf(record, by.key) !== author || now - record.at >= seconds || !isUsedBy(by, use, text, markOf))
        return false
      found = seq
      return true
    }
    if (!memory.find(fingerprint(this.#seeds, scope, author, text), take) && this.#hasStubs)
      memory.find(fingerprint(this.#seeds, scope, author, markOf().toString('hex')), take)
    return found
  }

  #record(seq: number): BoardRecord {
    return fromFrame(this.#read(seq))
  }
}

type PackedCommands = readonly [ids: PackedIds, seqs: Kept]

/** No record has this number: the command was voided. */
const forgotten = 0
const initialCommands = 64

/** Accepted commands that made no event: their 16-byte ids and their journal numbers. */
class Commands {
  readonly #ids = new IdTable(16)
  #seqs = new Uint32Array(initialCommands)

  get(id: Uint8Array): number | undefined {
    const number = this.#ids.find(id)
    return number === none || this.#seqs[number] === forgotten ? undefined : this.#seqs[number]
  }

  set(id: Uint8Array, seq: number): void {
    let number = this.#ids.find(id)
    if (number === none) {
      number = this.#ids.add(id)
      if (number === this.#seqs.length) this.#seqs = grown(this.#seqs, new Uint32Array(number * 2))
    }
    this.#seqs[number] = seq
  }

  pack(columns: Columns): PackedCommands {
    return [this.#ids.pack(columns), columns.put(bytesOf(this.#seqs, this.#ids.count))]
  }

  restore([ids, seqs]: PackedCommands, columns: Columns): void {
    this.#ids.restore(ids, columns)
    this.#seqs = new Uint32Array(columns.take(seqs, initialCommands * 4).buffer)
  }
}

function signedOf(record: BoardRecord): Signed {
  if (record.by === undefined) throw new Error('cannot remember a record without a signed command')
  return record.by
}

/** The identity of a record, as 64 hex. */
export function authorOf(record: BoardRecord, key: Uint8Array): string {
  if ('author' in record) return Buffer.from(record.author).toString('hex')
  if ('owner' in record && record.owner !== undefined) return Buffer.from(record.owner).toString('hex')
  return createHash('sha256').update(key).digest('hex')
}

/** Whether the signed bytes were redacted and removed from the disk; only their hash is left. */
function isDestroyed({ signed }: Signed): boolean {
  return signed.length === 0
}

function commandOf(signed: Uint8Array): { operation: string; nonce: string; requestId: string } {
  const command = commandIn(signed)
  const { operation, nonce, request_id } = command
  return { operation: String(operation ?? ''), nonce: String(nonce ?? ''), requestId: String(request_id ?? '') }
}

/** The marks that a stub has in their place, as hex. */
function marksOf({ cut }: Signed): ReturnType<typeof commandOf> {
  const [nonce, requestId] = [cut?.nonce, cut?.request].map((mark) => Buffer.from(mark ?? []).toString('hex'))
  return { operation: '', nonce: nonce!, requestId: requestId! }
}

/** Whether this is the command with that nonce or request id. Author and actor are already known to match. */
function isUsedBy(by: Signed, use: Use, text: string, markOf: () => Buffer): boolean {
  if (!isDestroyed(by)) return commandOf(by.signed)[use === 'nonce' ? 'nonce' : 'requestId'] === text
  // A stub from an older release has no mark, so the fingerprint decides: 52 bits that no user can choose.
  if (by.cut?.nonce === undefined) return true
  const kept = by.cut[use]
  return kept !== undefined && markOf().equals(kept)
}

/** Whether two signed commands differ only in nonce, timestamp and key. */
function sameContent(first: Signed, second: Signed): boolean {
  const files = [first, second].map(({ cut }) => (cut === undefined ? '' : Buffer.from(cut.file).toString('hex')))
  return files[0] === files[1] && contentOf(first.signed) === contentOf(second.signed)
}

function contentOf(signed: Uint8Array): string {
  const command = commandIn(signed)
  const { nonce, timestamp, public_key, ...content } = command
  return JSON.stringify(content)
}

/**
 * The usual decision: one act, written as one record, whose facts are also the reply. `isPublic`: the act gets a change number.
 * `entry`: its bytes in the public log, if it is a leaf; `entries`: the same for an act that is several leaves. `op`: the name
 * of the record, if it differs from the operation.
 */
export function act<Given extends Facts>(
  letter: WriteLetter,
  now: number,
  {
    facts,
    isPublic,
    entry,
    entries = entry === undefined ? [] : [entry],
    op = letter.op,
  }: {
    facts: Given
    isPublic: boolean
    entry?: Uint8Array
    entries?: readonly Uint8Array[]
    op?: string
  },
): Accepted<ActReply<Given>> {
  const record: FactRecord<Given> = {
    type: RecordType.act,
    room: letter.to,
    at: now,
    author: Buffer.from(letter.author, 'hex'),
    op,
    facts,
    by: letter.by,
  }
  const reply: ActReply<Given> = { at: now, isPublic, facts }
  const planned = { record, key: letter.id, isPublic, entries }
  return accept([planned], reply)
}
