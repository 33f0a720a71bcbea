/** What is shown of records that earlier releases wrote. */
import { expect, test } from 'vitest'
import { type BoardRecord, type PostRecord, RecordType, toFrame } from '../../../actors/records/record.ts'
import { State } from '../../../actors/state.ts'
import { versionView } from '../../../src/reads/event-view.ts'

const author = Buffer.alloc(32, 1)
const [first, second] = [Buffer.alloc(16, 2), Buffer.alloc(16, 3)]
const post: PostRecord = {
  type: RecordType.event,
  room: 'hall',
  page: 'main',
  kind: 'request',
  seq: 1,
  at: 1_790_000_000,
  author,
  by: { key: author, sig: Buffer.alloc(64), signed: Buffer.from('{"command":{"text":"first"}}') },
  via: 'command',
}

test('a version that was stored as a note is shown with the kind of its original', () => {
  const state = new State()
  const version = { ...post, kind: 'note', seq: 2, original: first, root: first }
  const records: readonly (readonly [BoardRecord, Buffer])[] = [
    [{ type: RecordType.roomCreated, room: 'hall', at: post.at, visibility: 'private' }, Buffer.alloc(16)],
    [post, first],
    [version, second],
  ]
  for (const [n, [record, key]] of records.entries())
    state.apply(record, key, { shard: 0, seq: n + 1, change: n + 1, leaf: 0 })
  const { type, flags, payload } = toFrame(version, second, false, [])
  const frame = { seq: 3, type, flags, payload: Buffer.from(payload) }
  const showing = { payload: false, now: post.at, handleOf: () => undefined }
  const shown = versionView(state, state.board.events.find(second), frame, showing)
  expect(shown).toMatchObject({ kind: 'request', supersedes: first.toString('hex') })
})
