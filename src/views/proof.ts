/**
 * The inclusion proof of an event: what log.proof and /api/log/proof answer (RFC 9162 2.1.3, with its signed head inside).
 * Checked here before it leaves: a damaged node file is found out, and never becomes a wrong proof.
 */
import { none } from '../../actors/event-index.ts'
import { frameEntry } from '../../actors/record.ts'
import type { Head } from '../../actors/shard.ts'
import { leafHash } from '../../storage/merkle.ts'
import { verifyInclusion } from '../../storage/merkle-verify.ts'
import type { TreeReader } from '../../storage/tree-reader.ts'
import { refusal } from '../refusals.ts'
import { eventOf } from './event.ts'
import type { ReadAnswer, ReadContext, ReadRequest } from './reads/read.ts'

export type ProofContext = ReadContext & {
  readonly tree: TreeReader
  readonly origin: string
  readonly vkey: string
  /** The signed head of exactly this size, or undefined when none was signed. */
  readonly headOf: (size: number) => Head | undefined
  readonly newest: Head
}

/** The tree file gives no path from a leaf to its signed root. */
export class Unproved extends Error {
  override readonly name = 'Unproved'
}

/** Throws Unproved, or TreeFileShort: the tree file is to be mended then, and the proof asked for again. */
export function proofAnswer(context: ProofContext, { args }: ReadRequest): ReadAnswer {
  const { board, tree } = context
  const id = String(args.event_id)
  const slot = board.events.find(Buffer.from(id, 'hex'))
  if (slot === none)
    return { ok: false, refusal: refusal('not_found', `the public log holds no event ${id}`, 'event_id') }
  const head = args.tree_size === undefined ? context.newest : context.headOf(Number(args.tree_size))
  const index = board.events.leaf[slot]!
  if (head === undefined || index >= head.size) {
    return {
      ok: false,
      refusal: refusal(
        'not_found',
        `no head of size ${args.tree_size} that covers leaf ${index} was signed`,
        'tree_size',
      ),
    }
  }
  const frame = context.body(slot)
  const entry = frameEntry(frame)
  const leaf = leafHash(entry)
  const path = tree.inclusionPath(index, head.size)
  const root = Buffer.from(head.checkpoint.split('\n')[2]!, 'base64')
  if (!verifyInclusion(BigInt(index), BigInt(head.size), leaf, path, root)) {
    throw new Unproved(`the tree file gives no valid proof for leaf ${index} at size ${head.size}`)
  }
  const expires = board.events.expires[slot]!
  const gone = expires !== 0 && expires <= context.now()
  const proof = {
    log: { origin: context.origin, vkey: context.vkey },
    event_id: id,
    leaf_index: index,
    leaf_hash: leaf.toString('hex'),
    entry: entry.toString('base64'),
    tree_size: head.size,
    root_hash: root.toString('hex'),
    inclusion_path: path.map((hash) => hash.toString('hex')),
    checkpoint: head.checkpoint,
    ...(gone ? {} : { signed_payload: Buffer.from(eventOf(frame).by.signed).toString('utf8') }),
  }
  return { ok: true, json: JSON.stringify(proof) }
}
