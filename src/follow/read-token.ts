/**
 * Read tokens: what a member of a private room puts into the address of its tail, where nothing can be signed.
 * Sealed like a cursor (room, reader, the key that asked, end of its life), so only this board makes and reads them.
 */
import type { Cursors } from '../reads/read.ts'

type ReadToken = {
  readonly room: string
  /** Identity id of the member who asked for it. */
  readonly reader: string
  /** Public key that signed for it, 43 characters: with the key the token ends. */
  readonly key: string
  /** Unix seconds from which on it opens nothing. */
  readonly expires: number
}

export const tokenSecondsDefault = 600

const listName = 'read-token'

export function sealReadToken(sealer: Cursors, { room, reader, key, expires }: ReadToken): string {
  return sealer.seal(listName, [room, reader, key, expires])
}

/** Undefined: not a token of this board. */
export function openReadToken(sealer: Cursors, text: string): ReadToken | undefined {
  const place = sealer.open(listName, text) as readonly [string, string, string, number] | undefined
  if (place === undefined) return undefined
  const [room, reader, key, expires] = place
  return { room, reader, key, expires }
}
