/**
 * Standard padded base64 (RFC 4648 section 4) in its one canonical form.
 *
 * Node's own decoder skips characters that it does not know and accepts the URL alphabet too. One value would then have
 * many spellings, and what was signed could be shown in another one. Here a text that {@link encodeBase64} would not
 * write is not base64.
 */

/** The bytes, or nothing when the text is not exactly what {@link encodeBase64} writes for them. */
export function decodeBase64(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, 'base64')
  return bytes.toString('base64') === text ? bytes : undefined
}

/** Bytes as standard base64 with padding. */
export function encodeBase64(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64')
}
