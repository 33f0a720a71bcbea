/**
 * A room's state about its works: which events are requests and which are results, who the parties are, and which changes to
 * those events it has yet to report to the market.
 *
 * A room knows the state of a work as of the last message. Changes to a marked event are recorded here in order, as
 * observations, until the market has received them. Only works known to the room are recorded, so that the market always knows
 * the work in question.
 */

import type { Blobs } from '../attachments/attachments.ts'
import { hex } from '../kernel/hex.ts'
import type { AuthorFacts, HideFacts, PostMarks, RedactFacts, RestoreFacts } from '../posts/marks.ts'
import type { Core, Projection, RecordPlace } from '../records/core.ts'
import { none } from '../records/event-index.ts'
import type { FactRecord, PostRecord } from '../records/record.ts'
import {
  type Observation,
  type ObservedArgs,
  type RoomRefusal,
  resultHashOf,
  type TellArgs,
  type UnbindArgs,
} from './letters.ts'

/** A result bound by the room: the hash of its newest version at that time, and how many versions it had. */
type Binding = {
  readonly result: string
  readonly sha256: string
  readonly versions: number
  /** Hash of the newest version posted before the market decided; absent if there was none. */
  readonly edited?: string
}

type Marked = {
  /** 32 hex: the event id of its request. */
  readonly work: string
  /** 32 hex of the command that caused the marking. */
  readonly command: string
  /** The newest tell, or undefined before the first. */
  lastTell: TellArgs | undefined
  /** By command: results that are bound but not known to be accepted by the market. */
  readonly bindings: Map<string, Binding>
  /** The result of the work, as it was bound. */
  result: Binding | undefined
  /**
   * Slot of a reply that the holder of the live fence has delivered -> hash of its newest version. A reply is delivered if they
   * posted it as a `result`, or if the market accepted it from them. A reply that is only bound is not: the market may refuse
   * it.
   */
  readonly delivered: Map<number, string>
  /** Slots of marked events that their own author has hidden. */
  readonly hiddenByAuthor: Set<number>
  /** The number of observations made, and the observations that the market has not received. */
  observations: number
  readonly unreported: Observation[]
}

/** Refusals are stored for a day: retries come within minutes of a start. */
const refusalSeconds = 86_400

type PackedMarked = readonly [
  work: string,
  command: string,
  lastTell: TellArgs | null,
  bindings: readonly (readonly [command: string, binding: Binding])[],
  result: Binding | null,
  delivered: readonly (readonly [slot: number, sha256: string])[],
  hiddenByAuthor: readonly number[],
  observations: number,
  unreported: readonly Observation[],
]
type Kept = { readonly refusal: RoomRefusal; readonly at: number }
type Packed = readonly [marked: readonly PackedMarked[], refusals: readonly (readonly [command: string, kept: Kept])[]]

export class RoomWorks implements Projection {
  readonly acts: Projection['acts'] = {
    'work.mark': ({ facts }: FactRecord<UnbindArgs>) => this.#add(this.#slotOf(facts.work), facts.command),
    'work.bind': ({ facts }: FactRecord<UnbindArgs & Binding>) => this.#bind(facts),
    'work.unbind': ({ facts }: FactRecord<UnbindArgs>) => this.#unbind(facts),
    'work.refusal': (act) => this.#refuse(act),
    'work.tell': (act: FactRecord<TellArgs>, place: RecordPlace) => this.#tell(act.facts, place),
    'work.observed': ({ facts }: FactRecord<ObservedArgs>) => this.#observed(facts),
  }
  readonly #core: Core
  readonly #marks: PostMarks
  readonly #blobs: Blobs
  /** By slot of the request. */
  readonly #marked = new Map<number, Marked>()
  /** Slot of a result -> the work that it belongs to. */
  readonly #results = new Map<number, Marked>()
  readonly #refusals = new Map<string, Kept>()
  /** Works with something that the market has not received, and works with a binding: few, even after years. */
  readonly #unreported = new Set<Marked>()
  readonly #binding = new Set<Marked>()
  /** Messages recorded for another actor since this thread started. */
  made = 0

  constructor(core: Core, marks: PostMarks, blobs: Blobs) {
    this.#core = core
    this.#marks = marks
    this.#blobs = blobs
  }

  /** The work whose request, or a version of it, is at this slot. */
  markedAt(slot: number): Marked | undefined {
    return this.#marked.size === 0 || slot === none ? undefined : this.#marked.get(this.#marks.original(slot))
  }

  /** The work with this id (32 hex). */
  find(work: string): Marked | undefined {
    return this.markedAt(this.#slotOf(work))
  }

  /** The live work whose worker delivered the event at this slot. */
  liveResultAt(slot: number): Marked | undefined {
    if (this.#marked.size === 0) return undefined
    const original = this.#marks.original(slot)
    const marked = this.#results.get(original) ?? this.markedAt(this.#core.board.events.parent(original))
    if (marked === undefined || !this.#isOfWorker(marked, original)) return undefined
    return this.#results.has(original) || marked.delivered.has(original) ? marked : undefined
  }

  /** Whether this reply is bound and the market may still accept it: as far as known it has not decided, and the work is not settled. */
  isBound(slot: number): boolean {
    const original = this.#marks.original(slot)
    return [...this.#binding].some(
      (marked) => marked.lastTell?.live !== false && this.#boundOf(marked, original).length > 0,
    )
  }

  /** The hash of what the worker of a live fence delivered at this slot, stored because the text can be removed. */
  deliveredHash(slot: number): string | undefined {
    const original = this.#marks.original(slot)
    const marked = this.markedAt(this.#core.board.events.parent(original))
    return marked !== undefined && this.#isOfWorker(marked, original) ? marked.delivered.get(original) : undefined
  }

  /** Whether its own author removed this event, by redacting it or by hiding it as a moderator. */
  isGoneByAuthor(slot: number): boolean {
    const original = this.#marks.original(slot)
    const { board } = this.#core
    const marked = this.#marked.get(original) ?? this.markedAt(board.events.parent(original))
    return this.#marks.redactionOf(original)?.by === 'author' || marked?.hiddenByAuthor.has(original) === true
  }

  /** Whether this identity may deliver a result to the request at this slot, whatever the policy of the room says. */
  holdsFence(slot: number, identity: string): boolean {
    return isHolder(slot === none ? undefined : this.markedAt(slot), identity)
  }

  /** Whether this identity holds the live fence of any work in this room. */
  isHolderIn(room: number, identity: string): boolean {
    const { events } = this.#core.board
    for (const [slot, marked] of this.#marked) if (isHolder(marked, identity) && events.room(slot) === room) return true
    return false
  }

  /** Id of a live work in this room to which this identity is a party. */
  liveWorkOf(room: number, identity: string): string | undefined {
    const { events } = this.#core.board
    for (const [slot, { work, lastTell }] of this.#marked) {
      if (lastTell?.live !== true || ![lastTell.requester, lastTell.reviewer, lastTell.worker].includes(identity))
        continue
      if (events.room(slot) === room) return work
    }
    return undefined
  }

  refusalOf(command: string): RoomRefusal | undefined {
    return this.#refusals.get(command)?.refusal
  }

  /** What the market has not received yet, in order for each work. */
  unreported(): Observation[] {
    return [...this.#unreported].flatMap(({ unreported }) => unreported)
  }

  /** Results that are bound but not known to be accepted. */
  unsettled(): { readonly work: string; readonly command: string; readonly result: string }[] {
    return [...this.#binding].flatMap(({ work, bindings }) =>
      [...bindings].map(([command, { result }]) => ({ work, command, result })),
    )
  }

  onEvent(event: PostRecord, slot: number): void {
    if (event.isRequest === true) this.#add(slot, this.#core.board.events.idHex(slot))
    if (this.#marked.size === 0) return
    const original = this.#marks.original(slot)
    const parent = this.#core.board.events.parent(original)
    if (parent === none) return
    const marked = this.markedAt(parent)
    if (marked === undefined) return
    const isDelivered = event.kind === 'result' && this.holdsFence(parent, hex(event.author))
    const isResult = this.#results.has(original)
    const isKept = isDelivered || isResult || marked.delivered.has(original)
    const bound = this.#boundOf(marked, original)
    if (!isKept && bound.length === 0) return
    // A text that has left the disk cannot be hashed any more; its hash is in an earlier record.
    const sha256 = resultHashOf(event, this.#blobs) ?? ''
    if (isKept) marked.delivered.set(original, sha256)
    for (const [command, binding] of bound) marked.bindings.set(command, { ...binding, edited: sha256 })
    if (isResult && slot !== original)
      this.#observe(marked, { event: 'result', change: 'edited', by: 'author', sha256 })
  }

  onAct(act: FactRecord<HideFacts | RestoreFacts | RedactFacts | AuthorFacts>): void {
    const change = seen[act.op]
    if (change === undefined || this.#marked.size === 0) return
    const slot = this.#core.board.events.find(act.facts.id)
    const asRequest = this.#marked.get(slot)
    const asResult = this.#results.get(slot)
    const marked = asRequest ?? asResult ?? this.markedAt(this.#core.board.events.parent(slot))
    if (marked === undefined) return
    const by = this.#authorOf(slot) === hex(act.author) ? 'author' : 'other'
    if (change === 'hidden' && by === 'author') marked.hiddenByAuthor.add(slot)
    if (act.op === 'room.restore') marked.hiddenByAuthor.delete(slot)
    // If one of two hides was removed, or the text is permanently gone, it is still not visible.
    const isStillGone = this.#marks.hideOf(slot) !== undefined || this.#marks.redactionOf(slot) !== undefined
    if (change === 'restored' && isStillGone) return
    if (asRequest !== undefined) this.#observe(marked, { event: 'request', change, by })
    if (asResult !== undefined) this.#observe(marked, { event: 'result', change, by })
  }

  pack(): Packed {
    return [
      [...this.#marked.values()].map(
        ({ work, command, lastTell, bindings, result, delivered, hiddenByAuthor, observations, unreported }) =>
          [
            work,
            command,
            lastTell ?? null,
            [...bindings],
            result ?? null,
            [...delivered],
            [...hiddenByAuthor],
            observations,
            unreported,
          ] as const,
      ),
      [...this.#refusals],
    ]
  }

  restore([marked, refusals]: Packed): void {
    for (const [
      work,
      command,
      lastTell,
      bindings,
      result,
      delivered,
      hiddenByAuthor,
      observations,
      unreported,
    ] of marked) {
      const one: Marked = {
        work,
        command,
        lastTell: lastTell ?? undefined,
        bindings: new Map(bindings),
        result: result ?? undefined,
        delivered: new Map(delivered),
        hiddenByAuthor: new Set(hiddenByAuthor),
        observations,
        unreported: [...unreported],
      }
      this.#marked.set(this.#slotOf(work), one)
      if (one.unreported.length > 0) this.#unreported.add(one)
      if (one.bindings.size > 0) this.#binding.add(one)
      if (one.result !== undefined) this.#results.set(this.#slotOf(one.result.result), one)
    }
    for (const [command, kept] of refusals) this.#refusals.set(command, kept)
  }

  #add(slot: number, command: string): void {
    this.#marked.set(slot, {
      work: this.#core.board.events.idHex(slot),
      command,
      lastTell: undefined,
      bindings: new Map(),
      result: undefined,
      delivered: new Map(),
      hiddenByAuthor: new Set(),
      observations: 0,
      unreported: [],
    })
  }

  #bind({ work, command, result, sha256, versions }: { work: string; command: string } & Binding): void {
    const marked = this.find(work)!
    marked.bindings.set(command, { result, sha256, versions })
    this.#binding.add(marked)
  }

  #unbind({ work, command }: UnbindArgs): void {
    this.#releaseBinding(this.find(work)!, command)
  }

  #boundOf({ bindings }: Marked, original: number): (readonly [command: string, binding: Binding])[] {
    return [...bindings].filter(([, { result }]) => this.#slotOf(result) === original)
  }

  #releaseBinding(marked: Marked, command: string): void {
    marked.bindings.delete(command)
    if (marked.bindings.size === 0) this.#binding.delete(marked)
  }

  #refuse({ at, facts }: FactRecord<{ command: string; refusal: RoomRefusal }>): void {
    const { command, refusal } = facts
    for (const [old, kept] of this.#refusals) {
      if (at - kept.at < refusalSeconds) break
      this.#refusals.delete(old)
    }
    this.#refusals.set(command, { refusal, at })
  }

  #tell(tell: TellArgs, place: RecordPlace): void {
    const slot = this.#slotOf(tell.work)
    const marked = this.#marked.get(slot)!
    const before = marked.lastTell
    marked.lastTell = tell
    const current = this.#takeResult(marked, tell)
    if (!tell.live || before?.worker !== tell.worker) marked.delivered.clear()
    if (tell.live && current !== undefined) marked.delivered.set(this.#slotOf(tell.result), current)
    if (before === undefined) this.#observeEarlierChanges(marked, slot, 'request')
    const { board, changes } = this.#core
    const room = board.events.room(slot)
    // For public works, the market's own records put the changes in the feed.
    if (board.roomList[room]!.visibility === 'public') return
    for (const [state, at] of tell.states)
      changes.add(`work.${state}`, { position: place.change, room, slot: none, subject: tell.work, at })
  }

  /**
   * The market names the result: its binding becomes the result, and changes since then are reported to the market. Returns the
   * hash of its newest version if the result is accepted now.
   */
  #takeResult(marked: Marked, { result, sha256: submitted }: TellArgs): string | undefined {
    const taken = [...marked.bindings].find(([, binding]) => binding.result === result)
    if (taken !== undefined) this.#releaseBinding(marked, taken[0])
    if (marked.result !== undefined && marked.result.result !== result) {
      this.#results.delete(this.#slotOf(marked.result.result))
      marked.result = undefined
    }
    if (result === '' || (taken === undefined && marked.result !== undefined)) return undefined
    const slot = this.#slotOf(result)
    const versions = this.#marks.edits(slot).length + 1
    const { edited, ...bound } = taken?.[1] ?? { result, sha256: submitted, versions }
    const isEdited = versions > bound.versions
    const current = isEdited ? (edited ?? marked.delivered.get(slot) ?? '') : bound.sha256
    marked.result = bound
    this.#results.set(slot, marked)
    if (isEdited) this.#observe(marked, { event: 'result', change: 'edited', by: 'author', sha256: current })
    this.#observeEarlierChanges(marked, slot, 'result')
    return current
  }

  /** Records what happened to an event before the room knew that it belongs to a work. */
  #observeEarlierChanges(marked: Marked, slot: number, event: 'request' | 'result'): void {
    const redaction = this.#marks.redactionOf(slot)
    if (redaction === undefined && this.#marks.hideOf(slot) === undefined) return
    const by = this.isGoneByAuthor(slot) ? 'author' : 'other'
    this.#observe(marked, { event, change: redaction === undefined ? 'hidden' : 'redacted', by })
  }

  #observe(marked: Marked, what: Omit<Observation, 'work' | 'n'>): void {
    // Once the work is settled, only redactions of the request matter: its text must leave the market's disk too.
    const matters = marked.lastTell?.live === true || (what.event === 'request' && what.change === 'redacted')
    if (marked.lastTell === undefined || !matters) return
    marked.observations++
    const result = what.event === 'result' ? { result: marked.result!.result } : {}
    marked.unreported.push({ work: marked.work, n: marked.observations, ...what, ...result })
    this.#unreported.add(marked)
    this.made++
  }

  #observed({ work, n }: ObservedArgs): void {
    const marked = this.find(work)!
    const { unreported } = marked
    while (unreported.length > 0 && unreported[0]!.n <= n) unreported.shift()
    if (unreported.length === 0) this.#unreported.delete(marked)
  }

  #slotOf(id: string): number {
    return this.#core.board.events.find(Buffer.from(id, 'hex'))
  }

  /** Whether the author of the event at this slot works on this live work, as far as the room knows. */
  #isOfWorker({ lastTell }: Marked, slot: number): boolean {
    return lastTell?.live === true && lastTell.worker === this.#authorOf(slot)
  }

  #authorOf(slot: number): string {
    const { events, authors } = this.#core.board
    return authors.idOf(events.author(slot))
  }
}

function isHolder(marked: Marked | undefined, identity: string): boolean {
  const lastTell = marked?.lastTell
  return lastTell?.live === true && lastTell.fence > 0 && lastTell.worker === identity
}

/** Acts that remove or restore a text. */
const seen: Readonly<Record<string, 'hidden' | 'restored' | 'redacted'>> = {
  'room.hide': 'hidden',
  'room.restore': 'restored',
  'author.hide': 'hidden',
  'author.show': 'restored',
  'event.redact': 'redacted',
}
