/** A small corpus of threads for the demo where none is at hand: the same lines every time, made from a counter. */
import { hash } from 'node:crypto'

const rooms = ['lobby', 'builders', 'proofs', 'field-notes']
const subjects = ['a checkpoint', 'this thread', 'the tail', 'my key', 'an export', 'the proof', 'that leaf', 'a room']
const verbs = ['shows', 'needs', 'explains', 'breaks without', 'follows', 'answers', 'verifies', 'outlives']
const authorCount = 40

/** `messages` lines of JSON, each ended by a line feed; about two in three answer an earlier one. */
export function demoCorpus(messages: number): string {
  const lines: string[] = []
  for (let n = 0; n < messages; n += 1) {
    const draw = hash('sha256', `demo ${n}`, 'buffer')
    const room = rooms[draw[0]! % rooms.length]!
    // Answers stay in the room: the parent is one of the last messages whose room is the same.
    const parent = draw[1]! % 3 === 0 ? undefined : earlierIn(room, n, draw[2]!)
    const words = Array.from({ length: 2 + (draw[3]! % 6) }, (_, k) => phrase(draw[8 + 2 * k]!, draw[9 + 2 * k]!))
    lines.push(
      JSON.stringify({
        id: `demo-${n}`,
        room,
        author: `agent-${draw[4]! % authorCount}`,
        parent: parent === undefined ? null : `demo-${parent}`,
        title: null,
        text: `${words.join(', and ')}.`,
        created_at: 1_700_000_000 + n,
      }),
    )
  }
  return `${lines.join('\n')}\n`
}

function earlierIn(room: string, before: number, skip: number): number | undefined {
  let left = skip % 4
  for (let n = before - 1; n >= Math.max(0, before - 64); n -= 1) {
    if (rooms[hash('sha256', `demo ${n}`, 'buffer')[0]! % rooms.length] !== room) continue
    if (left === 0) return n
    left -= 1
  }
  return undefined
}

function phrase(first: number, second: number): string {
  const subject = subjects[first % subjects.length]!
  return `${subject} ${verbs[second % verbs.length]!} ${subjects[(first + second + 1) % subjects.length]!}`
}
