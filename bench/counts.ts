/** What counting.ts counts in a board, and how another process reads it. */
import { once } from 'node:events'
import { connect } from 'node:net'

export const countNames = [
  'messages',
  'syncs',
  'writes',
  'json parsed',
  'json written',
  'msgpack read',
  'msgpack written',
] as const
export type CountName = (typeof countNames)[number]
export type Counts = Readonly<Record<CountName, number>>

export const countingModule = new URL('./counting.ts', import.meta.url).href

/** The sums since the board started. */
export async function readCounts(socket: string): Promise<Counts> {
  const peer = connect(socket).setEncoding('utf8')
  let text = ''
  peer.on('data', (piece) => {
    text += piece
  })
  await once(peer, 'end')
  return JSON.parse(text) as Counts
}

/** The counts added between `before` and `after`, divided by `share`. */
export function countsBetween(before: Counts, after: Counts, share = 1): Counts {
  const found = countNames.map((name) => [name, (after[name] - before[name]) / share])
  return Object.fromEntries(found) as Counts
}
