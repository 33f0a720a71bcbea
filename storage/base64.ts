/**
 * Standard padded base64 (RFC 4648 section 4) in its one canonical form.
 *
 * Node's own decoder skips unknown characters and also accepts the URL alphabet. One value would then have many
 * encodings, and a signed value could be shown in an encoding other than the signed one. Here only text exactly as
 * {@link encodeBase64} writes it is base64.
 */

/** The bytes, or undefined if the text is not exactly what {@link encodeBase64} writes for them. */
export function decodeBase64(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, 'base64')
  return bytes.toString('base64') === text ? bytes : undefined
}

/** Bytes as standard base64 with padding. */
export function encodeBase64(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64')
}
