import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import type { WriteLetter } from '../../actors/records/write.ts'
import { decidePost, type PostArgs } from '../../actors/rooms/room.ts'
import { State } from '../../actors/state.ts'

const state = new State()
const { board } = state

function posted(args: object): string {
  const sha = createHash('sha256').update(JSON.stringify(args)).digest()
  const letter: WriteLetter = {
    op: 'post',
    to: 'lobby',
    id: sha.subarray(0, 16),
    sha,
    author: sha.toString('hex'),
    by: { key: sha, sig: Buffer.alloc(64), signed: Buffer.from('{}') },
    timestamp: 1,
    nonce: 'n',
    requestId: '',
    via: 'command',
    limited: 0,
    rotated: false,
    suspended: false,
    operator: false,
    args: { page: 'main', kind: 'note', replyTo: '', supersedes: '', attachments: [], ttl: 0, proofBits: 0, ...args },
  }
  const situation = {
    state,
    board,
    now: 2,
    record: () => {
      throw new Error('no record is read')
    },
  }
  const decision = decidePost(situation, letter as WriteLetter<PostArgs>)
  return decision.ok ? 'ok' : `${decision.refusal.code} ${decision.refusal.field}`
}

test('a new kind beyond the limit is refused; known kinds and kinds with a meaning are accepted', () => {
  for (let n = 0; n < 65_000; n++) board.kinds.number(`kind-${n}`)
  expect(posted({ kind: 'one-more' })).toBe('invalid_field kind')
  expect(posted({ kind: 'kind-64999' })).toBe('ok')
  expect(posted({ kind: 'request' })).toBe('ok')
})
