/** What a record keeps of a signed command whose `data` is kept elsewhere, or nowhere: `Cut` in actors/records/record.ts. */
import type { Signed } from '../../actors/records/record.ts'
import { signedBy, type Verified } from './reply.ts'

const label = ',"data":"'
const quote = 0x22
const backslash = 0x5c

/** `mark`: 32 bytes that identify what was cut out. */
export function withoutData(verified: Verified, mark: Uint8Array): Signed {
  const { bytes, sha } = verified
  // Inside a string `"` follows a backslash, so the place is certain.
  const at = bytes.indexOf(label) + label.length
  const signed = Buffer.concat([bytes.subarray(0, at), bytes.subarray(endOfString(bytes, at))])
  return { ...signedBy(verified), signed, cut: { at, file: mark, sha } }
}

/** Place of the quote that ends the string which begins at `from`: the first one after an even number of backslashes. */
function endOfString(bytes: Buffer, from: number): number {
  for (let at = from; ; at++) {
    at = bytes.indexOf(quote, at)
    let escapes = 0
    while (bytes[at - 1 - escapes] === backslash) escapes++
    if (escapes % 2 === 0) return at
  }
}
