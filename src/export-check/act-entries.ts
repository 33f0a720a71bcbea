/**
 * Compares the entries of an act in the public log with its record. An import signs the entries of a file anew, so they must not state
 * anything that its records do not. Acts of older releases may have none.
 */
import { createHash } from 'node:crypto'
import { hex } from '../../actors/kernel/hex.ts'
import { ledgerEntries } from '../../actors/log/ledger-entry.ts'
import { importEntry } from '../../actors/log/rotation.ts'
import { isModeration, moderationEntry } from '../../actors/moderation/moderation.ts'
import { formatEntry, parseEntry } from '../../actors/records/entry.ts'
import { ActsOf, commandSha, type FactRecord } from '../../actors/records/record.ts'
import { isOfMarket, type MarketFacts, type Posting } from '../../actors/works/market/letters.ts'
import { moves } from './signed-record.ts'

const redactions = new ActsOf<{ readonly id: Uint8Array }>('event.redact')
const publications = new ActsOf<{ readonly id: string; readonly signed: Uint8Array }>('delegation.published')
const endings = new ActsOf<{ readonly id: string }>('delegation.revoke', 'delegation.ended')
const imports = new ActsOf<{ readonly origin: string; readonly size: number; readonly root: string }>('board.import')

type Given = {
  /** 16 bytes: the key of its frame. */
  readonly key: Uint8Array
  readonly entries: readonly Uint8Array[]
  /** Number of an event in its room; absent if the caller does not know events. */
  readonly seqOf?: (event: Uint8Array) => number
}

/** Whether each entry is what the board makes of this record. */
export function areEntriesOf(record: FactRecord, given: Given): boolean {
  const { entries } = given
  const stated = parseEntry(entries[0] ?? Buffer.alloc(0))
  if (stated === undefined) return entries.length === 0
  const expected = isOfMarket(record) ? ofMarket(record, stated) : ofAct(record, stated, given)
  return entries.length === expected.length && expected.every((entry, n) => entry.equals(entries[n]!))
}

type Stated = ReadonlyMap<string, string>

/** What the record does not say is taken from what the entry states. */
function ofAct(record: FactRecord, stated: Stated, { key, seqOf }: Given): Buffer[] {
  const { at, by, room } = record
  const event = hex(key)
  // An act without a signature follows from another command, whose id it has.
  const isOfCommand = stated.get('command')?.startsWith(event) === true
  const command = by === undefined ? (isOfCommand ? stated.get('command')! : '') : commandSha(by).toString('hex')
  const base = { event, room: '-', seq: '-', time: at, command }
  if (redactions.is(record)) {
    const { id } = record.facts
    const seq = seqOf === undefined ? stated.get('seq')! : seqOf(id)
    return [formatEntry({ ...base, kind: 'redact', room, seq, target: hex(id) })]
  }
  if (moves.is(record)) return [formatEntry({ ...base, kind: 'rotate' })]
  if (publications.is(record)) {
    const { id, signed } = record.facts
    const made = createHash('sha256').update(signed).digest('hex')
    return [formatEntry({ ...base, kind: 'delegate', event: id, command: made })]
  }
  if (endings.is(record)) return [formatEntry({ ...base, kind: 'undelegate', target: record.facts.id })]
  if (imports.is(record)) return [importEntry(at, { ...record.facts, root: Buffer.from(record.facts.root, 'hex') })]
  return isModeration(record) ? [moderationEntry(record, base)] : []
}

/** One for each posting that has a number. */
function ofMarket({ at, by, facts }: FactRecord<MarketFacts>, stated: Stated): Buffer[] {
  const { work = '-', steps = [], postings = [] } = facts
  const command = by === undefined ? stated.get('command')! : commandSha(by).toString('hex')
  const cause = { event: work, room: stated.get('room')!, command }
  const inLog = (moved: readonly Posting[], time: number): Buffer[] =>
    moved.flatMap(({ seq, id, ...posting }) =>
      seq === undefined ? [] : ledgerEntries([{ ...posting, transfer: id }], seq, { ...cause, time }),
    )
  return [...steps.flatMap((step) => inLog(step.postings, step.at)), ...inLog(postings, at)]
}
