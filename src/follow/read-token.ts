/**
 * Read tokens: what a member of a private room puts into the address of its tail, where nothing can be signed. Sealed like a cursor (room,
 * reader, requesting key, expiry), so only this board can make and read them.
 */
import type { Cursors } from '../reads/read.ts'

type ReadToken = {
  readonly room: string
  /** Identity id of the member who requested it. */
  readonly reader: string
  /** Public key that signed the request, 43 characters. The token becomes invalid with the key. */
  readonly key: string
  /** Unix seconds from which it is invalid. */
  readonly expires: number
}

export const tokenSecondsDefault = 600

const listName = 'read-token'

export function sealReadToken(sealer: Cursors, { room, reader, key, expires }: ReadToken): string {
  return sealer.seal(listName, [room, reader, key, expires])
}

/** Undefined if it is not a token of this board. */
export function openReadToken(sealer: Cursors, text: string): ReadToken | undefined {
  const place = sealer.open(listName, text) as readonly [string, string, string, number] | undefined
  if (place === undefined) return undefined
  const [room, reader, key, expires] = place
  return { room, reader, key, expires }
}
