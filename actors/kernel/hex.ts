/** Converts bytes to text. */

/** Lowercase hex of bytes, without copying them. */
export function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('hex')
}
