/** UTF-8 text that is never decoded, so that extracting and joining pieces costs no more than copying their bytes. */

/** A string with one character for each byte of the text's UTF-8. */
export type Utf8 = string

export function toUtf8(text: string): Utf8 {
  return isAscii(text) ? text : Buffer.from(text).toString('latin1')
}

/** The text that a quoted JSON string represents. */
export function textIn(json: Utf8): string {
  return JSON.parse(isAscii(json) ? json : Buffer.from(json, 'latin1').toString())
}

/** How many UTF-16 code units it decodes to. */
export function charsIn(bytes: Utf8): number {
  return isAscii(bytes) ? bytes.length : Buffer.from(bytes, 'latin1').toString().length
}

/** Joins parts into one buffer. Each is copied once; they are never joined as a string. */
export function utf8Bytes(parts: readonly Utf8[]): Buffer {
  const bytes = Buffer.allocUnsafe(parts.reduce((length, part) => length + part.length, 0))
  let at = 0
  for (const part of parts) at += bytes.write(part, at, 'latin1')
  return bytes
}

function isAscii(text: string): boolean {
  return /^[\x00-\x7f]*$/.test(text)
}
