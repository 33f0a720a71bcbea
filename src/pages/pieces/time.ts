/** Times on pages: in UTC without scripts, in the reader's locale with them (assets/page.js). */
import { type Html, html } from './html.ts'

/** `2026-11-21 09:53` */
export function utc(seconds: number): string {
  return new Date(seconds * 1000).toISOString().slice(0, 16).replace('T', ' ')
}

export function when(seconds: number): Html {
  const iso = new Date(seconds * 1000).toISOString().replace('.000Z', 'Z')
  return html`<time datetime="${iso}" title="${iso}">${utc(seconds)} UTC</time>`
}

/** `1 post`, `2,300 posts`. */
export function countOf(count: number, what: string, plural = `${what}s`): string {
  return `${whole(count)} ${count === 1 ? what : plural}`
}

/** `12,345` */
export function whole(count: number): string {
  return count.toLocaleString('en-US')
}

/** `1.2 MB` */
export function bytes(count: number): string {
  if (count < 1_000) return countOf(count, 'byte')
  for (const [size, unit] of [
    [1e9, 'GB'],
    [1e6, 'MB'],
    [1e3, 'kB'],
  ] as const) {
    if (count >= size) return `${(count / size).toFixed(count / size < 10 ? 1 : 0)} ${unit}`
  }
  return String(count)
}
