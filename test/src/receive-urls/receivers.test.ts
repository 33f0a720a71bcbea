import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import { RecordType } from '../../../actors/records/record.ts'
import { State } from '../../../actors/state.ts'
import { CursorSealer } from '../../../src/format/cursor.ts'
import { sealSecret } from '../../../src/format/sealed-secrets.ts'
import { dataOf, type ReadAnswer, type ReadContext } from '../../../src/reads/read.ts'
import { receiversReads } from '../../../src/receive-urls/reads.ts'

const author = createHash('sha256').update('owner').digest()
const owner = author.toString('hex')
const cursors = new CursorSealer(Buffer.alloc(32, 7))

/** What is shown of a receive URL with these facts, and what its owner is. */
function shown(facts: object) {
  const state = new State()
  const [receiver, hash] = ['ab'.repeat(16), 'cd'.repeat(32)]
  const chosen = { receiver, hash, label: '', room: '', dedupe: '', allow: [], post: false, ...facts }
  const record = { type: RecordType.act, room: `@in-${owner}`, at: 1, author, op: 'receiver.create', facts: chosen }
  state.apply(record, Buffer.alloc(16), { shard: 0, seq: 1, change: 1, leaf: 0 })
  const kept = State.unpack(state.pack(null))!.state
  const read = (op: keyof typeof receiversReads, args: object) => {
    const answer: ReadAnswer = receiversReads[op]({ state: kept, cursors } as unknown as ReadContext, {
      op,
      args: { ...args },
      reader: owner,
    })
    if (!answer.ok) throw new Error(`${op} was refused`)
    return dataOf(answer) as { secret?: string; receivers?: { signed: boolean }[] }
  }
  return [read('receiver.door', { receiver, hash }).secret, read('receiver.list', {}).receivers![0]!.signed]
}

test('a secret is opened to verify a delivery, sealed or as older releases stored it', () => {
  expect(shown({ sealed: sealSecret(cursors, 'receiver', owner, 'the secret of it') })).toEqual([
    'the secret of it',
    true,
  ])
  expect(shown({ hmac: 'the secret of it' })).toEqual(['the secret of it', true])
  expect(shown({ sealed: '' })).toEqual(['', false])
  expect(shown({ hmac: '' })).toEqual(['', false])
})

test('a secret that was sealed for another identity, or for a webhook, opens nothing', () => {
  for (const sealed of [
    sealSecret(cursors, 'receiver', 'ef'.repeat(32), 'the secret of it'),
    sealSecret(cursors, 'hook', owner, 'the secret of it'),
  ])
    expect(() => shown({ sealed })).toThrow('receiver.door was refused')
})
