/** The index of subscriptions: from a signal to the hooks it concerns, without examining the others. */
import { type HookKind, isHookKind } from '../../actors/webhooks/kind-names.ts'
import type { Signal, SignalsRequest } from './payloads/signals.ts'
import type { Pending } from './pending.ts'
import type { HookView } from './reads.ts'
import type { HookRun } from './subscription-run.ts'

const personal: ReadonlySet<string> = new Set<HookKind>(['reply', 'mention', 'inbox.item', 'receiver.item'])
const everywhere: ReadonlySet<string> = new Set<HookKind>(['work.open', 'work.update', 'document.written'])

export class SubscriptionIndex {
  readonly #byRoom = new Map<string, Set<HookRun>>()
  readonly #byOwner = new Map<string, Set<HookRun>>()
  readonly #everywhere = new Set<HookRun>()
  readonly heads = new Set<HookRun>()

  /** Whether any hook wants events that address its owner, which requires reading every post. */
  get isSpokenTo(): boolean {
    return this.#byOwner.size > 0
  }

  add(run: HookRun): void {
    const { kinds, filter, owner } = run.view
    const room = filter.room as string | undefined
    if (kinds.some((kind) => personal.has(kind))) put(this.#byOwner, owner, run)
    if (kinds.includes('log.checkpoint')) this.heads.add(run)
    if (room !== undefined) put(this.#byRoom, room, run)
    if (kinds.some((kind) => everywhere.has(kind) && !(kind === 'document.written' && room !== undefined)))
      this.#everywhere.add(run)
  }

  remove(run: HookRun): void {
    const { filter, owner } = run.view
    drop(this.#byOwner, owner, run)
    if (filter.room !== undefined) drop(this.#byRoom, String(filter.room), run)
    this.#everywhere.delete(run)
    this.heads.delete(run)
  }

  /** Hooks that may want it, each once. */
  of(signal: Signal): Iterable<HookRun> {
    const ofRoom = this.#byRoom.get(signal.room)
    const isOfRoomAlone = signal.to.length === 0 && !everywhere.has(signal.kinds[0] ?? '')
    if (isOfRoomAlone) return ofRoom ?? []
    const found = new Set<HookRun>(ofRoom)
    for (const owner of signal.to) for (const run of this.#byOwner.get(owner) ?? []) found.add(run)
    if (everywhere.has(signal.kinds[0] ?? '')) for (const run of this.#everywhere) found.add(run)
    return found
  }
}

function put(index: Map<string, Set<HookRun>>, name: string, run: HookRun): void {
  const runs = index.get(name)
  if (runs === undefined) index.set(name, new Set([run]))
  else runs.add(run)
}

function drop(index: Map<string, Set<HookRun>>, name: string, run: HookRun): void {
  const runs = index.get(name)
  if (runs?.delete(run) === true && runs.size === 0) index.delete(name)
}

/** What a hook gets of a change, in order. Anything that depends on the texts is checked when it is built. */
export function wantedBy(view: HookView, change: readonly Pending[]): readonly Pending[] {
  if (change[0] === undefined || isClosed(view, change[0])) return none
  const { kinds, filter, owner } = view
  const isWanted = ({ kind, signal }: Pending) => kinds.includes(kind) && fits(kind, filter, owner, signal)
  // Most changes are delivered as one kind.
  if (change.length === 1) return isWanted(change[0]!) ? change : none
  return change.filter(isWanted)
}

const none: readonly Pending[] = []

/** Everything public comes from the feed, source 0, and nothing else does. */
export function isClosed({ publicOnly }: Pick<HookView, 'publicOnly'>, { source }: Pick<Pending, 'source'>): boolean {
  return publicOnly === true && source !== 0
}

function fits(kind: HookKind, filter: HookView['filter'], owner: string, signal: Signal): boolean {
  const is = (name: string, value: string) => filter[name] === undefined || filter[name] === value
  switch (kind) {
    case 'room.post':
      return filter.room === signal.room && is('page', signal.page) && is('kind', signal.kind)
    case 'document.written':
      return is('room', signal.room) && is('document', signal.subject)
    case 'receiver.item':
      return signal.to.includes(owner) && is('receiver', signal.subject)
    case 'work.open':
      return true
    case 'work.update':
      return is('work_id', signal.subject)
    default:
      return signal.to.includes(owner)
  }
}

/** The filter of a hook that fell behind: hooks with the same one are caught up together. */
export function signalsFilter({ kinds, filter }: HookView): Omit<SignalsRequest, 'from'> {
  const known = kinds.filter(isHookKind)
  const isPersonal = known.some((kind) => personal.has(kind))
  const isOfRoom = known.every(
    (kind) => kind === 'room.post' || (kind === 'document.written' && filter.room !== undefined),
  )
  return {
    spoken: isPersonal,
    room: isOfRoom ? String(filter.room) : '',
    personal: known.every((kind) => personal.has(kind)),
  }
}
