/** Text that goes from bytes to bytes: never decoded, so that cutting it out and putting it together costs no more than copying it. */

/** A text with one character for each byte of its UTF-8. */
export type Utf8 = string

export function toUtf8(text: string): Utf8 {
  return isAscii(text) ? text : Buffer.from(text).toString('latin1')
}

/** The text that a JSON text, quoted, stands for. */
export function textIn(json: Utf8): string {
  return JSON.parse(isAscii(json) ? json : Buffer.from(json, 'latin1').toString())
}

/** How many characters of UTF-16 it is decoded to. */
export function charsIn(bytes: Utf8): number {
  return isAscii(bytes) ? bytes.length : Buffer.from(bytes, 'latin1').toString().length
}

/** Parts as one buffer; each is copied once, and they are never one text. */
export function utf8Bytes(parts: readonly Utf8[]): Buffer {
  const bytes = Buffer.allocUnsafe(parts.reduce((length, part) => length + part.length, 0))
  let at = 0
  for (const part of parts) at += bytes.write(part, at, 'latin1')
  return bytes
}

function isAscii(text: string): boolean {
  return /^[\x00-\x7f]*$/.test(text)
}
