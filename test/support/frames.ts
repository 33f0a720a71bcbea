/** Frames whose content is determined by their seq, so that any process can check that it reads the right ones. */
import { createHash } from 'node:crypto'
import { KEYED, type NewFrame } from '../../storage/journal.ts'

/** 16 bytes, as evenly distributed as an event id. */
export function keyOf(seq: number): Buffer {
  return createHash('sha256').update(`key ${seq}`).digest().subarray(0, 16)
}

/** A frame with a key and 1..300 more bytes. */
export function numberedFrame(seq: number): NewFrame {
  const body = Buffer.alloc(1 + ((seq * 37) % 300), `${seq};`)
  return { type: 1 + (seq % 200), flags: KEYED | (seq % 4), payload: Buffer.concat([keyOf(seq), body]) }
}
