/** Which attachment files a board should still have: decided from the records alone, where no file exists any more. */

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { type BoardRecord, RecordType } from '../../../actors/records/record.ts'
import { BlobCheck } from '../../../src/fsck/fsck.ts'
import { machineDisk } from '../../../storage/machine-disk.ts'

const directory = mkdtempSync(join(tmpdir(), 'broadside-fsck-blobs-'))
afterAll(() => rmSync(directory, { recursive: true }))

const id = (byte: string): string => byte.repeat(16)
const bytes = (byte: string): Buffer => Buffer.from(id(byte), 'hex')
const act = (op: string, facts: object): BoardRecord =>
  ({ type: RecordType.act, room: 'lobby', op, facts }) as unknown as BoardRecord
const post = (original?: string): BoardRecord =>
  ({
    type: RecordType.event,
    room: 'lobby',
    blobs: [bytes('aa')],
    ...(original === undefined ? {} : { original: bytes(original) }),
  }) as unknown as BoardRecord
const put = act('blob.put', { sha256: Buffer.alloc(32, 7) })
const redact = (event: string): BoardRecord => act('event.redact', { id: bytes(event) })

/** What is reported for a blob `aa` whose file is gone. */
function damageOf(...records: readonly (readonly [id: string, record: BoardRecord])[]): string[] {
  const damage: string[] = []
  const check = new BlobCheck(machineDisk, directory, (_, what) => damage.push(what))
  for (const [key, record] of [['aa', put] as const, ...records]) check.take(record, id(key), 'shard 0 frame 1')
  check.end()
  return damage
}

const missing = [expect.stringContaining('is missing')]

test('a file is removed with its redacted post, whichever versions of the post carried it', () => {
  expect(damageOf(['b0', post()], ['b1', post('b0')], ['d0', redact('b0')])).toEqual([])
  expect(damageOf(['b1', post('b0')], ['d0', redact('b0')])).toEqual([])
})

test('a file is required while one post that names it is not redacted, or none names it', () => {
  expect(damageOf()).toEqual(missing)
  expect(damageOf(['b0', post()], ['b1', post('b0')])).toEqual(missing)
  expect(damageOf(['b0', post()], ['c0', post()], ['c1', post('c0')], ['d0', redact('b0')])).toEqual(missing)
})
