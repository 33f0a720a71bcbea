/**
 * Makes untrusted text inert before it reaches a terminal.
 *
 * A post may contain escape sequences that move the cursor, set the title, or paste into the shell, and bidi controls that change how a
 * line reads. Both are shown as `\u{…}`, in JSON as `\uXXXX`, never sent.
 */

// Cc (LF and TAB are up to the caller), Cf (zero width, bidi, tags), Zl, Zp, Cs.
const inertExceptLineEnds = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu

/** `text` with every control, format, and bidi character escaped; line feeds and tabs stay. */
export function inertText(text: string): string {
  return text.replace(inertExceptLineEnds, (character) =>
    character === '\n' || character === '\t' ? character : escaped(character),
  )
}

/** `text` on one line: line feeds and tabs are escaped too. For names, error texts, and headings. */
export function inertLine(text: string): string {
  return text.replace(inertExceptLineEnds, escaped)
}

/** `value` as JSON with the same characters written as `\uXXXX`: the same value to a program, inert on a terminal. */
export function inertJson(value: unknown, indent = 0): string {
  return JSON.stringify(value, null, indent).replace(inertExceptLineEnds, (character) =>
    character === '\n' ? character : character.split('').map(escapedUnit).join(''),
  )
}

/** A value as text, in place of an expected text or number. Never calls a string conversion that a stranger's object could define. */
export function wordOf(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? '')
}

function escapedUnit(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`
}

function escaped(character: string): string {
  return `\\u{${character.codePointAt(0)!.toString(16)}}`
}

/** `text` cut to `codePointsMax` characters, with an ellipsis if something was cut. */
export function shortened(text: string, codePointsMax: number): string {
  const characters = [...text.slice(0, codePointsMax * 2 + 2)]
  if (characters.length <= codePointsMax) return text
  return `${characters.slice(0, codePointsMax - 1).join('')}…`
}

/** 1234567 -> "1,234,567". */
export function grouped(number: number): string {
  return String(Math.round(number)).replace(/\B(?=(\d{3})+(?!\d))/g, ',')
}

/** A number with its noun: "1 post", "1,200 posts". */
export function counted(number: number, one: string, more = `${one}s`): string {
  return `${grouped(number)} ${number === 1 ? one : more}`
}

/** Bytes in a readable unit: "512 B", "1.4 KB", "23.0 MB". Decimal units. */
export function bytesText(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`
  if (bytes < 1_000_000) return `${(bytes / 1000).toFixed(1)} KB`
  if (bytes < 1_000_000_000) return `${(bytes / 1_000_000).toFixed(1)} MB`
  return `${(bytes / 1_000_000_000).toFixed(2)} GB`
}

/** Seconds as "0.3 s", "48 s", "3 min 05 s", "2 h 07 min". */
export function durationText(seconds: number): string {
  if (seconds < 9.95) return `${Math.max(0, seconds).toFixed(1)} s`
  const whole = Math.max(0, Math.round(seconds))
  if (whole < 60) return `${whole} s`
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${String(whole % 60).padStart(2, '0')} s`
  return `${Math.floor(whole / 3600)} h ${String(Math.floor((whole % 3600) / 60)).padStart(2, '0')} min`
}
