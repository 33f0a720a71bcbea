/** Checks a board from outside: proofs, heads and exports, verified with the offline verifier as any stranger would. */
import { createHash } from 'node:crypto'
import { expect } from 'vitest'
import { nameOf } from '../../actors/log/book.ts'
import { splitLines } from '../../src/cli/lines.ts'
import { type ExportReport, verifyExport } from '../../src/cli/verify-export.ts'
import { verifyProofJson } from '../../src/cli/verify-proof.ts'
import { readOnThisThread } from '../../src/export-check/readers.ts'
import { openCheckpoint } from '../../storage/checkpoint.ts'
import { verifyConsistency } from '../../storage/merkle-verify.ts'
import { parseVkey, type VerifierKey } from '../../storage/note.ts'
import type { Client, EventJson, ProofJson, ReceiptJson } from './client.ts'

/** The key that a board publishes, to be pinned once. */
export async function logKeyOf(client: Client): Promise<VerifierKey> {
  const { data } = await client.get('/api/log/checkpoint')
  const parsed = parseVkey((data as { vkey?: string }).vkey!)
  if (!parsed.ok) throw new Error(parsed.problem)
  return parsed.value
}

/** Every head that anybody was ever shown: signed by the pinned key, one root per size. */
export class Heads {
  readonly #key: VerifierKey
  readonly #roots = new Map<number, string>()
  readonly #checked = new Set<string>()
  largest = 0

  constructor(key: VerifierKey) {
    this.#key = key
  }

  get sizes(): number[] {
    return [...this.#roots.keys()].sort((a, b) => a - b)
  }

  /** Records a signed head and returns its size. Fails if it is not signed, or if that size had another root. */
  record(checkpoint: string): number {
    const opened = openCheckpoint(checkpoint, this.#key)
    if (!opened.ok) throw new Error(`${opened.problem}: ${checkpoint}`)
    const { size, root } = opened.value
    if (this.#checked.has(checkpoint)) return size
    this.#checked.add(checkpoint)
    const before = this.#roots.get(size)
    if (before !== undefined && before !== root.toString('hex'))
      throw new Error(`two roots were signed for size ${size}`)
    this.#roots.set(size, root.toString('hex'))
    this.largest = Math.max(this.largest, size)
    return size
  }

  /** Fails unless the tree of `to` entries extends that of `from`: both are sizes of recorded heads. */
  async proveConsistent(client: Client, from: number, to: number): Promise<void> {
    const log = nameOf(this.#key.name)
    const { status, text } = await client.get(`/api/log/consistency?log=${log}&from=${from}&to=${to}`)
    if (status !== 200) throw new Error(`no consistency proof from ${from} to ${to}: ${text}`)
    const { data } = JSON.parse(text) as { readonly data: { readonly consistency_path: readonly string[] } }
    const [first, second] = [from, to].map((size) => Buffer.from(this.#roots.get(size)!, 'hex'))
    const path = data.consistency_path.map((hash) => Buffer.from(hash, 'hex'))
    if (!verifyConsistency(from, to, path, first!, second!))
      throw new Error(`the tree of ${to} entries does not begin with the tree of ${from} that was signed`)
  }
}

/** Records the head in the receipt of a public post and checks that it covers its leaf. */
export function recordReceipt(heads: Heads, receipt: ReceiptJson): void {
  if (receipt.checkpoint === undefined) throw new Error(`a receipt without a checkpoint: ${JSON.stringify(receipt)}`)
  const size = heads.record(receipt.checkpoint)
  expect(size).toBe(receipt.tree_size)
  expect(receipt.log_index).toBeLessThan(size)
}

/** Requests the proof of an event and verifies it offline with the pinned key. */
export async function proveEvent(
  client: Client,
  key: VerifierKey,
  eventId: string,
  treeSize?: number,
): Promise<ProofJson> {
  const size = treeSize === undefined ? '' : `&tree_size=${treeSize}`
  const answer = await client.get(`/api/log/proof?message=${eventId}${size}`)
  if (answer.status !== 200) throw new Error(`no proof for ${eventId}: ${answer.status} ${answer.text}`)
  const facts = verifyProofJson(answer.data as Record<string, unknown>, key)
  expect(facts.eventId).toBe(eventId)
  expect(facts.hasSignedBytes).toBe(true)
  return answer.data as ProofJson
}

export type ExportedEvent = EventJson & { readonly command_sha256: string; readonly supersedes?: string }
export type VerifiedExport = {
  readonly sha256: string
  readonly events: readonly ExportedEvent[]
  readonly report: ExportReport
}

/** Downloads the whole export, verifies it offline with the pinned key, and fails if anything in it is wrong. */
export async function fetchVerifiedExport(client: Client, key: VerifierKey): Promise<VerifiedExport> {
  const { status, text } = await client.get('/v1/export')
  if (status !== 200) throw new Error(`no export: ${status} ${text}`)
  const bytes = Buffer.from(text)
  const report = await verifyExport({
    lines: splitLines(
      (async function* () {
        yield bytes
      })(),
    ),
    reader: readOnThisThread(),
    logKey: key,
    progress: () => {},
  })
  expect(report).toMatchObject({ failures: 0, hasEnd: true, isSignedByLog: true })
  const lines = text.trimEnd().split('\n')
  const events = lines.map((line) => JSON.parse(line) as ExportedEvent).filter(({ type }) => type === 'event')
  checkOrder(events)
  return { sha256: createHash('sha256').update(text).digest('hex'), events, report }
}

/** Ids and leaves occur once, seqs of rooms have no gaps, threads are connected. */
function checkOrder(events: readonly ExportedEvent[]): void {
  expect(new Set(events.map(({ event_id }) => event_id)).size).toBe(events.length)
  expect(new Set(events.map(({ log }) => log.index)).size).toBe(events.length)
  const threads = new Map<string, string>()
  const next = new Map<string, number>()
  for (const { event_id, room, seq, reply_to, thread, supersedes } of events) {
    const expected = next.get(room) ?? 1
    if (seq !== expected) throw new Error(`room ${room} goes on with ${seq} instead of ${expected}`)
    next.set(room, seq + 1)
    const before = supersedes ?? reply_to
    const root = before === undefined ? event_id : threads.get(before)
    if (thread !== root) throw new Error(`${event_id} is in thread ${thread} instead of ${root}`)
    threads.set(event_id, thread)
  }
}
