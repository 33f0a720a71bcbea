/**
 * Positions in the updates of an identity, sealed in the same form as the cursors of updates.get, so that either can continue
 * where the other ended.
 */
import { type CursorSealer, epochText, type PlacesEpoch } from '../format/cursor.ts'

const updatesList = (reader: string) => `updates:${reader}`

/** `marks`: next position of the feed, then of each shard. */
export function sealPlace(cursors: CursorSealer, owner: string, epoch: PlacesEpoch, marks: readonly number[]): string {
  const places = marks.map((mark) => mark.toString(36)).join('.')
  return cursors.seal(updatesList(owner), [epochText(epoch, marks.length), places])
}

export type OpenedPlace =
  /** Only of the feed if the cursor was given to an anonymous caller. */
  | { readonly marks: readonly number[] }
  /** From another lifetime of this board, or another layout of its shards. */
  | { readonly expired: true }

/** Undefined if not made by this board, or not for this owner. If a change was only delivered in part, it begins with that change again. */
export function openPlace(
  cursors: CursorSealer,
  owner: string,
  epoch: PlacesEpoch,
  sources: number,
  text: string,
): OpenedPlace | undefined {
  const place = (cursors.open(updatesList(owner), text) ?? cursors.open(updatesList(''), text)) as
    | readonly [string, string]
    | undefined
  if (place === undefined) return undefined
  const marks = place[1].split('.').map((mark) => Number.parseInt(mark, 36))
  const isWhole = marks.length === sources || marks.length === 1
  const isOfThisLife = place[0] === epochText(epoch, marks.length)
  return isOfThisLife && isWhole && marks.every(Number.isSafeInteger) ? { marks } : { expired: true }
}
