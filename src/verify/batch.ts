/**
 * The message to a verifying thread: n signatures in one ArrayBuffer, and n verdict bytes back.
 *
 * Raw bytes in one transferred buffer, because one object per signature costs a structured clone each (about 5 us), a tenth of the
 * verification itself. All integers are u32 in the machine's own byte order: the message never leaves the process.
 *
 *   offset      size   field
 *   0           4      n
 *   4           4n     byte length of each message
 *   4 + 4n      64n    signatures
 *   4 + 68n     32n    public keys
 *   4 + 100n    ...    messages, one after another, no padding
 */

import {
  type BackendName,
  type Ed25519Backend,
  hasRightLengths,
  judge,
  publicKeyBytes,
  type SignatureItem,
  signatureBytes,
} from './backends.ts'

/** Start data of a verifying thread: the only backend it may use, or undefined to let it choose. */
export type VerifyWorkerData = { readonly backend: BackendName | undefined }

/** Copies the items into a letter. Throws for a signature or key of the wrong length: see `hasRightLengths`. */
export function packBatch(items: readonly SignatureItem[]): ArrayBuffer {
  const count = items.length
  let size = 4 + 100 * count
  for (const item of items) size += item.message.length
  const letter = new ArrayBuffer(size)
  const bytes = new Uint8Array(letter)
  const lengths = new Uint32Array(letter, 0, 1 + count)
  lengths[0] = count
  let signatureAt = 4 + 4 * count
  let keyAt = 4 + 68 * count
  let messageAt = 4 + 100 * count
  for (let index = 0; index < count; index += 1) {
    const item = items[index]!
    if (!hasRightLengths(item)) throw new RangeError('a signature has 64 bytes and a public key 32')
    lengths[1 + index] = item.message.length
    bytes.set(item.signature, signatureAt)
    bytes.set(item.publicKey, keyAt)
    bytes.set(item.message, messageAt)
    signatureAt += signatureBytes
    keyAt += publicKeyBytes
    messageAt += item.message.length
  }
  return letter
}

/** Views of the items in a letter, without copying. Throws RangeError if the lengths inside don't add up to its size. */
export function unpackBatch(letter: ArrayBuffer): SignatureItem[] {
  if (letter.byteLength < 4) throw new RangeError('a batch begins with its count')
  const count = new Uint32Array(letter, 0, 1)[0]!
  if (4 + 100 * count > letter.byteLength) throw new RangeError('the batch is shorter than its count states')
  const lengths = new Uint32Array(letter, 4, count)
  const items: SignatureItem[] = []
  let messageAt = 4 + 100 * count
  for (let index = 0; index < count; index += 1) {
    items.push({
      signature: Buffer.from(letter, 4 + 4 * count + signatureBytes * index, signatureBytes),
      publicKey: Buffer.from(letter, 4 + 68 * count + publicKeyBytes * index, publicKeyBytes),
      message: Buffer.from(letter, messageAt, lengths[index]!),
    })
    messageAt += lengths[index]!
  }
  if (messageAt !== letter.byteLength) throw new RangeError('the messages do not fill the batch')
  return items
}

/** One verdict byte for each item, in order. */
export function judgeBatch(backend: Ed25519Backend, items: readonly SignatureItem[]): Uint8Array {
  const verdicts = new Uint8Array(items.length)
  for (const [index, item] of items.entries()) verdicts[index] = judge(backend, item)
  return verdicts
}
