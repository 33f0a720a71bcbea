/**
 * MessagePack in JavaScript alone.
 *
 * The package itself loads a native reader of strings (msgpackr-extract 3.0.4). It has one table for the whole process,
 * and clears and fills it again whenever another thread loads it. A thread that decodes at that moment takes the bytes
 * of a binary value for strings, without any error: 8,377 of 1.1 million decodes were wrong next to a thread that only
 * loaded it, and a board that starts its threads together found an event without its signed command in its journal.
 * With the native reader a record would decode 15 to 35 percent faster; without it a letter costs 0.6 to 1.1 us more (a
 * post costs about 255).
 */
import { Packr, RESET_BUFFER_MODE, Unpackr } from 'msgpackr/pack'

export { Packr, Unpackr }

const poolBytes = 8_192
const poolBytesMax = 8 * 1024 * 1024

/**
 * `codec.pack` for values that may be large. All codecs of a thread write into one buffer, which grows to four times
 * the largest value and would stay that large for the life of the thread. A buffer that has grown beyond a bound is
 * given up with the bytes that are returned.
 */
export function encode(codec: Packr, value: unknown, mode?: number): Buffer {
  const bytes = codec.pack(value, mode)
  if (bytes.buffer.byteLength > poolBytesMax) codec.useBuffer(Buffer.allocUnsafeSlow(poolBytes))
  return bytes
}

/**
 * A value in memory of its own, to be transferred to another thread. The place in the buffer of the codecs is free again at once: a
 * thread that answered with long lists used up that buffer of a megabyte nine times a second, and each one that it left behind brought
 * the next full collection of garbage nearer.
 */
export function encodeApart(codec: Packr, value: unknown): Uint8Array<ArrayBuffer> {
  return Uint8Array.prototype.slice.call(encode(codec, value, RESET_BUFFER_MODE)) as Uint8Array<ArrayBuffer>
}
