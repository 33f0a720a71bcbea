/**
 * Read tokens: what a member of a private room puts into the address of its tail, where nothing can be signed.
 * Sealed like a cursor (room, reader, end of its life), so only this board makes and reads them.
 */
import type { CursorSealer } from '../format/cursor.ts'

export type ReadToken = {
  readonly room: string
  /** Identity id of the member who asked for it. */
  readonly reader: string
  /** Unix seconds from which on it opens nothing. */
  readonly expires: number
}

export const tokenSecondsDefault = 600

const listName = 'read-token'

export function sealReadToken(sealer: CursorSealer, { room, reader, expires }: ReadToken): string {
  return sealer.seal(listName, [room, reader, expires])
}

/** Undefined: not a token of this board, or one whose time is over. `now`: Unix seconds. */
export function openReadToken(sealer: CursorSealer, text: string, now: number): ReadToken | undefined {
  const place = sealer.open(listName, text) as readonly [string, string, number] | undefined
  if (place === undefined || place[2] <= now) return undefined
  const [room, reader, expires] = place
  return { room, reader, expires }
}
