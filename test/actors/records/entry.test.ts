/** Entries as journals store them: the text that the log hashes is restored exactly. */
import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import {
  entryCommand,
  entryText,
  formatEntry,
  keptEntry,
  parseEntry,
  postEntry,
  writeLogged,
} from '../../../actors/records/entry.ts'

const sha = createHash('sha256').update('a signed command').digest()
const key = sha.subarray(0, 16)
const command = sha.toString('hex')

function textOf(room: string, seq: number, time: number): Buffer {
  return formatEntry({ kind: 'post', event: command.slice(0, 32), room, seq, time, command })
}

function logged(kept: Buffer): Buffer {
  const into = Buffer.alloc(kept.length + 24)
  const length = writeLogged(kept, key, into, 8)
  return into.subarray(8, 8 + length)
}

test.each([
  ['a', 1, 0],
  ['many-17', 70_000, 1_790_000_000],
  ['x'.repeat(64), 0xffff_ffff, 0xffff_ffff],
])(
  'the entry of a post in %s, number %i, has the text that was hashed, in its record and in the log',
  (room, seq, time) => {
    const text = textOf(room, seq, time)
    const kept = postEntry({ room, seq, time, sha })
    expect(kept).toHaveLength(25 + room.length)
    expect(logged(kept)).toHaveLength(41 + room.length)
    expect(String(entryText(kept, key))).toBe(String(text))
    expect(String(entryText(logged(kept)))).toBe(String(text))
    expect([entryCommand(kept, key), entryCommand(logged(kept)), entryCommand(text)]).toEqual([
      command,
      command,
      command,
    ])
    expect(keptEntry(text, key)).toEqual(kept)
  },
)

test.each([
  ['lobby', 0x1_0000_0000, 1],
  ['lobby', 1, 0x1_0000_0000],
])('a post whose number or time needs more than four bytes stores its text (%s, %i, %i)', (room, seq, time) => {
  const kept = postEntry({ room, seq, time, sha })
  expect(String(kept)).toBe(String(textOf(room, seq, time)))
  expect(entryText(kept, key)).toBe(kept)
  expect(logged(kept)).toEqual(kept)
})

test('any other entry is stored as its text', () => {
  const others = [
    formatEntry({ kind: 'rotate', event: command.slice(0, 32), room: '-', seq: '-', time: 1, command }),
    formatEntry({
      kind: 'redact',
      event: command.slice(0, 32),
      room: 'a',
      seq: 2,
      time: 1,
      command,
      target: 'f'.repeat(32),
    }),
    formatEntry({ kind: 'post', event: '0'.repeat(32), room: 'a', seq: 2, time: 1, command }),
    Buffer.from(String(textOf('a', 2, 1)).replace('seq 2', 'seq 02')),
    Buffer.from('broadside/entry@v1\nkind later\nsomething else\n'),
    Buffer.from('no entry at all'),
  ]
  for (const text of others) {
    expect(keptEntry(text, key)).toBe(text)
    expect(entryText(text, key)).toBe(text)
    expect(logged(text)).toEqual(text)
    expect(entryCommand(text)).toBe(parseEntry(text)?.get('command') ?? '-')
  }
})
