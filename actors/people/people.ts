/**
 * Facts about identities other than posts and handles: profiles, key rotations, and suspensions.
 *
 * An identity is named after its first key forever. A rotation moves it to another key; each key it left is refused from then
 * on, but still names it. All of it is decided by the registry and public, so the registry's shard and the feed both have all
 * of it.
 */

import { hex } from '../kernel/hex.ts'
import { previousKeysMax } from '../kernel/results.ts'
import type { Core, Projection, RecordPlace } from '../records/core.ts'
import { ActsOf, commandIn, dataIn, type FactRecord } from '../records/record.ts'
import type { identityProfileSet } from './operations.ts'

/** What an identity says about itself. */
type Profile = {
  readonly description: string
  readonly capabilities: readonly string[]
  readonly links: readonly string[]
  /** Unix seconds. */
  readonly at: number
}

/** An identity moved to another key. `shard` and `place`: where the act is stored, with what the old key signed. */
export type Rotation = {
  /** 32 hex: first half of the hash of the signed bytes. */
  readonly id: string
  readonly identity: string
  /** Public keys, 43 characters. */
  readonly from: string
  readonly to: string
  /** The new key's signature over the same bytes, 86 characters. */
  readonly proof: string
  readonly at: number
  readonly change: number
  /** Index in the public log (in the feed only). */
  readonly leaf: number
  readonly shard: number
  readonly place: number
}

type Suspension = {
  readonly reason: string
  /** Identity id of the operator. */
  readonly by: string
  readonly at: number
  /** Their posts are hidden until it ends. */
  readonly hidesPosts?: true
}

/** Facts of a suspension. */
export type SuspendFacts = { readonly target: string; readonly reason: string; readonly hide_posts?: true }

/** Facts of an erasure, which is permanent. */
export type EraseFacts = { readonly target: string; readonly reason: string }

type Packed = readonly [
  profiles: readonly (readonly [identity: string, profile: Profile])[],
  rotations: readonly Rotation[],
  suspensions: readonly (readonly [identity: string, suspension: Suspension])[],
  erased: readonly (readonly [identity: string, handle: string])[],
  profileActs: readonly (readonly [identity: string, acts: readonly number[]])[],
  redactedActs: readonly number[],
]

/** Acts by which the operator stops an identity from writing, or lets it write again. */
export const suspensions = new ActsOf<Omit<SuspendFacts, 'reason'>>(
  'identity.suspend',
  'identity.unsuspend',
  'identity.erase',
)

export class People implements Projection {
  readonly acts: Projection['acts'] = {
    'identity.profile.set': (act, place) => this.#profile(act, place),
    'identity.rotate': (act, place) => this.#rotate(act, place),
    'identity.suspend': (act) => this.#suspend(act),
    'identity.unsuspend': (act: FactRecord<{ target: string }>) => {
      this.#suspended.delete(act.facts.target)
    },
    'identity.erase': (act) => this.#erase(act),
    // Its only trace is the entry in the log.
    'board.import': () => {},
  }
  readonly #core: Core
  readonly #profiles = new Map<string, Profile>()
  readonly #suspended = new Map<string, Suspension>()
  /** Oldest first. */
  readonly #rotations: Rotation[] = []
  /** Every key that was ever moved from or to -> the identity it names. */
  readonly #identities = new Map<string, string>()
  readonly #retired = new Set<string>()
  /** Identity -> the newest keys that it has moved away from, oldest first. */
  readonly #keysBefore = new Map<string, string[]>()
  /** Identity -> the handle that it had, or ''. */
  readonly #erased = new Map<string, string>()
  /** Identity -> numbers of its acts that hold a profile. */
  readonly #profileActs = new Map<string, number[]>()
  /** Acts whose signed bytes must leave the disk, in the order in which this thread learned it. */
  readonly #redactedActs: number[] = []

  constructor(core: Core) {
    this.#core = core
  }

  isErased(identity: string): boolean {
    return this.#erased.has(identity)
  }

  get erased(): IterableIterator<string> {
    return this.#erased.keys()
  }

  /** Numbers of acts whose signed bytes were redacted. The list only grows, at its end. */
  redactedActs(): readonly number[] {
    return this.#redactedActs
  }

  /** Number of the newest act that holds its profile; undefined if it has none, or was erased. */
  profileAct(identity: string): number | undefined {
    return this.#profileActs.get(identity)?.at(-1)
  }

  profile(identity: string): Profile | undefined {
    return this.#profiles.get(identity)
  }

  suspension(identity: string): Suspension | undefined {
    return this.#suspended.get(identity)
  }

  /** All rotations, oldest first. */
  get rotations(): readonly Rotation[] {
    return this.#rotations
  }

  /** The newest keys that an identity has moved away from, oldest first. */
  keysBefore(identity: string): readonly string[] {
    return this.#keysBefore.get(identity) ?? []
  }

  get suspended(): IterableIterator<readonly [identity: string, suspension: Suspension]> {
    return this.#suspended.entries()
  }

  /** The identity that a key (43 characters), old or new, names because of a rotation; undefined if only by its own hash. */
  identityOf(key: string): string | undefined {
    return this.#identities.get(key)
  }

  /** Whether the identity has moved away from this key. */
  isRetired(key: string): boolean {
    return this.#retired.has(key)
  }

  pack(): Packed {
    return [
      [...this.#profiles],
      this.#rotations,
      [...this.#suspended],
      [...this.#erased],
      [...this.#profileActs],
      this.#redactedActs,
    ]
  }

  restore([profiles, rotations, suspensions, erased, profileActs, redactedActs]: Packed): void {
    for (const [identity, profile] of profiles) this.#profiles.set(identity, profile)
    for (const rotation of rotations) this.#noteRotation(rotation)
    for (const [identity, suspension] of suspensions) this.#suspended.set(identity, suspension)
    for (const [identity, handle] of erased) this.#setErased(identity, handle)
    for (const [identity, acts] of profileActs) this.#profileActs.set(identity, [...acts])
    this.#redactedActs.push(...redactedActs)
  }

  #profile({ author, at, by }: FactRecord<object>, { seq }: RecordPlace): void {
    // If the identity was erased later, the text is gone.
    if (by!.signed.length === 0) return
    const acts = this.#profileActs.get(hex(author))
    if (acts === undefined) this.#profileActs.set(hex(author), [seq])
    else acts.push(seq)
    const command = commandIn(by!.signed)
    const said = dataIn<typeof identityProfileSet>(command)
    const { description = '', capabilities = [], links = [] } = said
    const identity = hex(author)
    if (description === '' && capabilities.length + links.length === 0) this.#profiles.delete(identity)
    else this.#profiles.set(identity, { description, capabilities, links, at })
  }

  #rotate(
    { author, at, by, facts }: FactRecord<{ to: string; proof: string }>,
    { id, change, leaf, shard, seq }: RecordPlace,
  ): void {
    const identity = hex(author)
    const { to, proof } = facts
    const from = Buffer.from(by!.key).toString('base64url')
    this.#noteRotation({ id: hex(id), identity, from, to, proof, at, change, leaf, shard, place: seq })
    const known = this.#core.board.authors.get(identity)
    if (known !== undefined) known.key = to
  }

  #noteRotation(rotation: Rotation): void {
    const { identity, from, to } = rotation
    this.#rotations.push(rotation)
    this.#identities.set(from, identity).set(to, identity)
    this.#retired.add(from)
    const before = this.#keysBefore.get(identity) ?? []
    this.#keysBefore.set(identity, before)
    if (before.push(from) > previousKeysMax) before.shift()
  }

  #erase({ author, at, facts }: FactRecord<EraseFacts>): void {
    const { target, reason } = facts
    this.#suspended.set(target, { reason, by: hex(author), at })
    this.#profiles.delete(target)
    this.#redactedActs.push(...(this.#profileActs.get(target) ?? []))
    this.#profileActs.delete(target)
    this.#setErased(target, this.#core.board.authors.get(target)?.handle ?? '')
  }

  #setErased(identity: string, handle: string): void {
    const { authors, handles } = this.#core.board
    this.#erased.set(identity, handle)
    const known = authors.get(identity)
    if (known !== undefined) known.handle = undefined
    if (handle !== '') handles.retire(handle)
  }

  #suspend({ author, at, facts }: FactRecord<SuspendFacts>): void {
    const { target, reason, hide_posts: hidesPosts } = facts
    this.#suspended.set(target, { reason, by: hex(author), at, ...(hidesPosts === true ? { hidesPosts } : {}) })
  }
}
