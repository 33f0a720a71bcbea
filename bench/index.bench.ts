/**
 * What is the longest that one add to the index of events takes, as a board grows?
 *
 * While one event is added, its thread does nothing else: every read of the board waits. A table or a column that is rebuilt in one step
 * when it is full causes a pause that grows with the board. The plain alternative is a Map from the hex ids to numbers.
 */
import { EventIndex, none } from '../actors/records/event-index.ts'
import type { Bench, Row } from './report.ts'

const idBytes = 16
/** Each thread has this many replies after its first post. */
const repliesEach = 5

export const index: Bench = {
  name: 'index',
  question: 'What is the longest that one add to the index of events takes?',
  run: async ({ isQuick }) => {
    const sizes = isQuick ? [500_000, 1_000_000, 2_000_000] : [1_000_000, 2_000_000, 4_000_000, 8_000_000, 13_000_000]
    const events = new EventIndex()
    const plain = new Map<string, number>()
    const rows = longestAdds('index of events', sizes, (slot, id) => addEvent(events, slot, id))
    const plainRows = longestAdds('plain: Map of hex ids', sizes, (slot, id) => plain.set(id.toString('hex'), slot))
    const note = 'collections of garbage and other programs are in the longest adds too'
    return [{ title: 'adds', rows: [...rows, ...plainRows], notes: [note] }]
  },
}

function addEvent(events: EventIndex, slot: number, id: Buffer): void {
  const root = slot % (repliesEach + 1) === 0 ? none : slot - (slot % (repliesEach + 1))
  const where = { shard: 0, place: slot + 1, room: slot % 200, page: 0, kind: 0, author: slot % 1_000, seq: slot + 1 }
  const rest = { at: 1_700_000_000 + (slot >> 3), isEdit: false, expires: 0, change: slot + 1, leaf: slot }
  events.add({ id, root, parent: root, ...where, ...rest })
}

/** A row for each size: what the adds up to it, from the previous size, took. */
function longestAdds(name: string, sizes: readonly number[], add: (slot: number, id: Buffer) => void): Row[] {
  let slot = 0
  return sizes.map((size) => {
    const from = slot
    const longest = new Float64Array(2)
    const before = process.cpuUsage()
    for (; slot < size; slot++) {
      const id = idOf(slot)
      const startedAt = performance.now()
      add(slot, id)
      const ms = performance.now() - startedAt
      if (ms > longest[0]!) longest.set([ms, longest[0]!])
      else if (ms > longest[1]!) longest[1] = ms
    }
    const { user, system } = process.cpuUsage(before)
    return {
      '': name,
      'up to': size,
      'longest add, ms': longest[0]!,
      'second longest, ms': longest[1]!,
      'us of processor each': (user + system) / (size - from),
    }
  })
}

/** Looks like the start of a hash, and is unique. */
function idOf(slot: number): Buffer {
  const id = Buffer.allocUnsafe(idBytes)
  let state = slot
  for (let at = 0; at < idBytes - 4; at += 4) {
    state = Math.imul(state ^ (state >>> 15), 0x2c1b_3c6d) + 0x9e37_79b9
    id.writeInt32LE((state ^ (state >>> 13)) | 0, at)
  }
  id.writeUInt32LE(slot, idBytes - 4)
  return id
}
