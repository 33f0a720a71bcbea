/** Decides letters on one state, as a shard does, without threads or a disk, and stores the records to replay them. */

import { hash } from 'node:crypto'
import { deciders } from '../../actors/deciders.ts'
import type { ActorRefusal } from '../../actors/kernel/refusals.ts'
import type { AnyWriteName } from '../../actors/operations.ts'
import type { BoardRecord } from '../../actors/records/record.ts'
import type { WriteLetter } from '../../actors/records/write.ts'
import { State } from '../../actors/state.ts'

export type SendOptions = {
  readonly text?: string
  readonly args?: object
  readonly via?: string
  readonly operator?: boolean
}

export type Decided =
  | {
      readonly ok: true
      readonly id: string
      readonly reply: Readonly<Record<string, unknown>>
      readonly records: number
    }
  | { readonly ok: false; readonly refusal: ActorRefusal }

type KeptRecord = { readonly record: BoardRecord; readonly key: Uint8Array }

const people = new Map<string, { readonly key: Buffer; readonly id: string }>()

function keysOf(name: string) {
  const found = people.get(name)
  if (found !== undefined) return found
  const key = hash('sha256', `key of ${name}`, 'buffer')
  const made = { key, id: hash('sha256', key) }
  people.set(name, made)
  return made
}

/** Identity id of a person by name. */
export function person(name: string): string {
  return keysOf(name).id
}

export class ShardHarness {
  state = new State()
  now = 1_790_000_000
  readonly records: KeptRecord[] = []
  #count = 0

  /** `who` sends `op` to an actor; what is accepted is applied. */
  send(
    who: string,
    op: AnyWriteName,
    to: string,
    { text = '', args = {}, via = 'command', operator = false }: SendOptions = {},
  ): Decided {
    this.#count += 1
    const signed = Buffer.from(JSON.stringify({ command: { operation: op, text, nonce: `n${this.#count}` } }))
    return this.decide(who, op, to, { signed, args, via, operator })
  }

  decide(
    who: string,
    op: AnyWriteName,
    to: string,
    {
      signed,
      args,
      via = 'command',
      operator = false,
    }: { signed: Buffer; args: object; via?: string; operator?: boolean },
  ): Decided {
    const sha = hash('sha256', signed, 'buffer')
    const { key, id: author } = keysOf(who)
    const letter: WriteLetter = {
      op,
      to,
      id: sha.subarray(0, 16),
      sha,
      author,
      by: { key, sig: Buffer.alloc(64), signed },
      timestamp: this.now,
      nonce: '',
      requestId: '',
      via,
      limited: 0,
      rotated: false,
      suspended: false,
      operator,
      args: args as Readonly<Record<string, unknown>>,
    }
    const { state, now } = this
    const record = (seq: number) => this.records[seq - 1]!.record
    const decision = deciders[op]!({ state, board: state.board, now, record }, letter)
    if (!decision.ok) return decision
    for (const planned of decision.records) this.#apply(state, planned, this.records.push(planned))
    return { ok: true, id: sha.toString('hex', 0, 16), reply: decision.reply, records: decision.records.length }
  }

  /** The same records on a new state, and from a snapshot taken halfway: both must equal this one. */
  replay(): { readonly replayed: State; readonly unpacked: State } {
    const replayed = new State()
    for (const [n, kept] of this.records.entries()) this.#apply(replayed, kept, n + 1)
    return { replayed, unpacked: State.unpack(this.state.pack(null))!.state }
  }

  #apply(state: State, { record, key }: KeptRecord, seq: number): void {
    state.apply(record, key, { shard: 0, seq, change: seq, leaf: 0 })
  }
}
