/**
 * Does framing cost anything beyond the CRC that it needs?
 *
 * One frame of 400 bytes of payload. The limit is zlib's CRC-32 over the same bytes; the plain alternatives are a msgpack map of the same
 * fields and a line of JSON, both without a checksum.
 */
import { crc32 } from 'node:zlib'
import { Packr } from '../actors/kernel/msgpack.ts'
import { decodeFrame, encodeFrame, FRAME_HEADER_BYTES } from '../storage/frame.ts'
import { compare, looped } from './compare.ts'
import type { Bench } from './report.ts'

const payloadBytes = 400
const loops = 200
const seed = 0x12345678

export const frameBench: Bench = {
  name: 'frame',
  question: 'Does framing cost anything beside its CRC?',
  run: async ({ isQuick }) => {
    const payload = Buffer.alloc(payloadBytes, 'x')
    const frame = { type: 1, flags: 0, payload }
    const into = Buffer.alloc(FRAME_HEADER_BYTES + payloadBytes)
    encodeFrame(into, 0, frame, { seq: 7, durableSeq: 6, seed })
    const packr = new Packr({ useRecords: false })
    const object = { seq: 7, type: 1, flags: 0, payload }
    const packed = Buffer.from(packr.pack(object))
    const line = JSON.stringify({ ...object, payload: payload.toString('base64') })
    const limit = looped(`CRC-32 of ${into.length} bytes`, loops, () => crc32(into))
    const cases = [
      looped('encodeFrame', loops, (n) => encodeFrame(into, 0, frame, { seq: n + 1, durableSeq: n, seed })),
      looped('decodeFrame', loops, () => decodeFrame(into, 0, into.length, seed)),
      looped('plain: msgpackr pack, no CRC', loops, () => packr.pack(object)),
      looped('plain: msgpackr unpack, no CRC', loops, () => packr.unpack(packed)),
      looped('plain: JSON and base64, no CRC', loops, () =>
        JSON.stringify({ seq: 7, type: 1, flags: 0, payload: payload.toString('base64') }),
      ),
      looped('plain: parse of that', loops, () =>
        Buffer.from((JSON.parse(line) as typeof object).payload as never, 'base64'),
      ),
    ]
    return [
      { title: `a frame of ${payloadBytes} bytes`, rows: await compare(limit, cases, { isQuick, unit: 'frames' }) },
    ]
  },
}
