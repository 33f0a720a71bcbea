/** Who signed the records of a stopped board: its frames are written anew, with right checksums, and one thing in a record is changed. */
import { cpSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, expect, test, vi } from 'vitest'
import {
  type BoardRecord,
  frameKey,
  fromFrame,
  keptEntries,
  PUBLIC,
  RecordType,
  toFrame,
} from '../../actors/records/record.ts'
import { main } from '../../src/cli/main.ts'
import { signingBytes } from '../../src/format/signing.ts'
import { ReadableFrames } from '../../storage/around-damage.ts'
import { MORE } from '../../storage/frame.ts'
import { Journal } from '../../storage/journal.ts'
import { machineDisk } from '../../storage/machine-disk.ts'
import { capturedTerminal } from '../src/cli/captured-terminal.ts'
import { boardDirectory, startBoard } from '../support/board-process.ts'
import { Client, person } from '../support/client.ts'
import { createDelegation } from '../support/delegations.ts'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 })

const made = boardDirectory()
/** Frames of its shard. */
let framesMade: number
const ada = person('ada')
const next = person('the next key of ada')
const delegate = person('a delegate of ada')

beforeAll(async () => {
  const board = await startBoard({ directory: made })
  const client = await Client.of(board)
  const posted = async (signer: typeof ada, text: string) => {
    const answer = await client.post(signer, { room: 'many', text })
    expect([answer.status, answer.text]).toEqual([200, answer.text])
  }
  await posted(ada, 'by ada')
  await createDelegation(client, ada, delegate)
  await posted(delegate, 'by a delegate')
  const signing = { timestamp: Math.floor(Date.now() / 1_000), nonce: 'a move' }
  const move = { operation: 'identity.rotate', target: next.publicKey } as const
  const bytes = signingBytes(client.serviceId, { ...move, public_key: ada.publicKey, ...signing })
  const { body } = client.sign(ada, move, signing)
  const proof = next.sign(bytes).toString('base64url')
  const moved = await client.send(JSON.stringify({ ...(JSON.parse(body) as object), proof }))
  expect([moved.status, moved.text]).toEqual([200, moved.text])
  await posted(next, 'by ada with the next key')
  client.close()
  await board.stop()
  const journal = Journal.open({ disk: machineDisk, directory: join(made, 'shard-00'), segmentBytesMax: 1024 * 1024 })
  framesMade = journal.nextSeq - 1
  journal.close()
})

type Change = (record: BoardRecord) => BoardRecord | undefined

/** A copy of the board in which the first record for which `change` returns another one is that one. */
function forged(change: Change): string {
  const directory = boardDirectory()
  cpSync(made, directory, { recursive: true })
  const shard = join(directory, 'shard-00')
  rmSync(shard, { recursive: true })
  machineDisk.makeDirectory(shard)
  const from = new ReadableFrames(machineDisk, join(made, 'shard-00'))
  const to = Journal.open({ disk: machineDisk, directory: shard, segmentBytesMax: 1024 * 1024, takesStubs: true })
  let isChanged = false
  for (const frame of from.through(framesMade)) {
    const record = fromFrame(frame)
    const changed: BoardRecord | undefined = isChanged ? undefined : change(record)
    isChanged ||= changed !== undefined
    const { flags } = frame
    to.append([
      toFrame(changed ?? record, frameKey(frame), (flags & PUBLIC) !== 0, keptEntries(frame), (flags & MORE) !== 0),
    ])
  }
  to.close()
  from.close()
  expect(isChanged).toBe(true)
  return directory
}

async function fsck(directory: string, ...options: string[]): Promise<{ code: number; out: string }> {
  const terminal = capturedTerminal()
  const code = await main(['fsck', '--data', directory, ...options], terminal)
  return { code, out: terminal.said.out }
}

test('what was signed with first keys, by delegates and after a move is right', async () => {
  const { out } = await fsck(made, '--signatures')
  expect(out).toContain('Everything agrees.')
  expect(out).not.toMatch(/not checked|no mark/)
})

test('fsck says that it did not check who signed, and that it had no mark to compare with', async () => {
  const directory = boardDirectory()
  cpSync(made, directory, { recursive: true })
  const { code, out } = await fsck(directory)
  expect([code, out]).toEqual([0, expect.stringContaining('Everything agrees.')])
  expect(out).toContain('Who signed the records was not checked: --signatures does that.')
  expect(out).toContain(`There is no mark at ${directory}.mark, so an older copy of the directory would look the same.`)
})

const zeros = Buffer.alloc(64)

test.each<[what: string, change: Change, words: string]>([
  [
    'another author',
    (record) => (record.type === RecordType.event ? { ...record, author: zeros.subarray(32) } : undefined),
    'the key that signed it is not one of its author',
  ],
  [
    'another signature',
    (record) => (record.type === RecordType.event ? { ...record, by: { ...record.by, sig: zeros } } : undefined),
    'its signature does not verify',
  ],
  [
    'another signature of a delegation',
    (record) =>
      record.type === RecordType.event && record.by.for !== undefined
        ? { ...record, by: { ...record.by, for: { ...record.by.for, sig: zeros } } }
        : undefined,
    'the signature of its delegation does not verify',
  ],
  [
    'another id of a delegation',
    (record) =>
      record.type === RecordType.event && record.by.for !== undefined
        ? { ...record, by: { ...record.by, for: { ...record.by.for, id: zeros.subarray(48) } } }
        : undefined,
    'the id of its delegation is not the hash of the signed bytes',
  ],
  [
    'another signature of the next key',
    (record) =>
      record.type === RecordType.act && record.op === 'identity.rotate'
        ? { ...record, facts: { ...record.facts, proof: zeros.toString('base64url') } }
        : undefined,
    'the signature of the key to which it moves the identity does not verify',
  ],
])('fsck --signatures finds %s', async (_what, change, words) => {
  const directory = forged(change)
  const said = await fsck(directory, '--signatures')
  expect([said.code, said.out]).toEqual([3, expect.stringMatching(new RegExp(`damage +shard 0 frame \\d+: ${words}`))])
})

test.each<[what: string, change: Change]>([
  ['an event', (record) => (record.type === RecordType.event ? { ...record, at: record.at - 1 } : undefined)],
  [
    'a move to another key',
    (record) =>
      record.type === RecordType.act && record.op === 'identity.rotate' ? { ...record, at: record.at - 1 } : undefined,
  ],
  [
    'a published delegation',
    (record) =>
      record.type === RecordType.act && record.op === 'delegation.published'
        ? { ...record, facts: { ...record.facts, id: '0'.repeat(32) } }
        : undefined,
  ],
])('fsck finds %s that is not as in the log', async (_what, change) => {
  const directory = forged(change)
  expect((await fsck(directory)).out).toMatch(/damage +shard 0 frame \d+: its log entry does not match the record/)
})
