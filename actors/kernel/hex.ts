/** Bytes as text. */

/** Lowercase hex of bytes, which are not copied for it. */
export function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('hex')
}
