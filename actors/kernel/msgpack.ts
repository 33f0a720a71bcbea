/**
 * MessagePack, without native code.
 *
 * By default msgpackr loads a native string reader (msgpackr-extract 3.0.4). That has a single table for the whole
 * process, which it clears and refills whenever another thread loads it. A thread that is decoding at that moment reads
 * the bytes of binary values as strings, without any error. Next to a thread that only loaded it, 8,377 of 1.1 million
 * decodes were wrong; a board that starts its threads together found an event without its signed command in its
 * journal. With the native reader, records would decode 15 to 35 percent faster; without it, a letter costs 0.6 to 1.1
 * us more (a post costs about 255).
 */
import { Packr, RESET_BUFFER_MODE, Unpackr } from 'msgpackr/pack'

export { Packr, Unpackr }

const poolBytes = 8_192
const poolBytesMax = 8 * 1024 * 1024

/**
 * `codec.pack` for values that may be large. All codecs of a thread write into one buffer, which grows to four times
 * the largest value and would keep that size for the life of the thread. A buffer that has grown beyond a limit is
 * abandoned along with the returned bytes.
 */
export function encode(codec: Packr, value: unknown, mode?: number): Buffer {
  const bytes = codec.pack(value, mode)
  if (bytes.buffer.byteLength > poolBytesMax) codec.useBuffer(Buffer.allocUnsafeSlow(poolBytes))
  return bytes
}

/**
 * Encodes a value into its own memory, to be transferred to another thread. The space in the codecs' shared buffer is
 * free again immediately. Otherwise a thread that answered with long lists used up that megabyte buffer nine times a
 * second, and each abandoned one hastened the next full garbage collection.
 */
export function encodeApart(codec: Packr, value: unknown): Uint8Array<ArrayBuffer> {
  return Uint8Array.prototype.slice.call(encode(codec, value, RESET_BUFFER_MODE)) as Uint8Array<ArrayBuffer>
}
