/** A slow export: changes after its beginning are left to the next one. */
import { createHash } from 'node:crypto'
import { expect, test, vi } from 'vitest'
import { formatEntry } from '../../../actors/records/entry.ts'
import { type BoardRecord, RecordType, toFrame } from '../../../actors/records/record.ts'
import { State } from '../../../actors/state.ts'
import type { ExportContext, ExportState } from '../../../src/export/chunk.ts'
import { exportChunk } from '../../../src/export/chunks.ts'
import type { Frame } from '../../../storage/journal.ts'

const at = 1_790_000_000
const checkpoint = 'board.example/log/2026a\n2\n\n'

/** A room, a post in it, and its redaction: changes 1 to 3, leaves 0 and 1 for the last two. */
function redacted(): ExportContext {
  const state = new State(undefined, 'reading')
  const frames: Frame[] = []
  const sha = createHash('sha256').update('{}').digest()
  const id = sha.subarray(0, 16)
  const names = { event: id.toString('hex'), room: 'hall', seq: 1, time: at, command: sha.toString('hex') }
  const apply = (record: object, entry?: Buffer): void => {
    const seq = frames.length + 1
    const frame = toFrame(record as BoardRecord, id, true, entry === undefined ? [] : [entry])
    frames.push({ ...frame, seq } as unknown as Frame)
    state.apply(record as BoardRecord, id, { shard: 0, seq, change: seq, leaf: seq - 2 })
  }
  const by = { key: Buffer.alloc(32, 2), sig: Buffer.alloc(64), signed: Buffer.from('{"command":{"text":"x"}}') }
  const author = Buffer.alloc(32, 1)
  apply({ type: RecordType.roomCreated, room: 'hall', at, visibility: 'public' })
  const post = { type: RecordType.event, room: 'hall', page: 'main', kind: 'note', seq: 1, at, author, by, via: 'x' }
  apply(post, formatEntry({ kind: 'post', ...names }))
  const facts = { id, reason: 'mine', by: 'author' }
  const redaction = { type: RecordType.act, room: 'hall', at, author, op: 'event.redact', facts, by }
  apply(redaction, formatEntry({ kind: 'redact', ...names, target: names.event }))
  state.book.take({ type: 1, size: 2, checkpoint } as unknown as Parameters<typeof state.book.take>[0], 1)
  const frame = (_: number, seq: number): Frame => frames[seq - 1]!
  const body = (slot: number): Frame => frame(0, state.board.events.place(slot))
  return {
    state,
    board: state.board,
    body,
    frame,
    now: () => at,
    handleOf: () => undefined,
  } as unknown as ExportContext
}

test('a redaction after the size that an export proves removes the text, and its leaf is not named', () => {
  const context = redacted()
  const linesOf = (state: Pick<ExportState, 'end' | 'size'>) => {
    const begun = { row: 0, rotation: 0, given: 0, checkpoint, count: 0, log: 0, leaf: 0, ...state }
    const chunk = exportChunk(context, { filter: {}, limit: 0, cursor: '', state: begun })
    if (!chunk.ok) throw new Error(chunk.refusal.message)
    return Buffer.from(chunk.bytes)
      .toString()
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as { type: string; text?: string; redaction?: object })
  }
  expect(linesOf({ end: 3, size: 2 })).toMatchObject([{ type: 'tombstone', redaction: { log: { index: 1 } } }])
  const early = linesOf({ end: 2, size: 1 })
  expect(early).toMatchObject([{ type: 'tombstone', reason: 'mine' }])
  expect(early[0]).not.toHaveProperty('redaction')
  expect(early[0]).not.toHaveProperty('text')
})

test('for an export of one room, an author is looked up once, however often they moved to another key', () => {
  const state = new State(undefined, 'reading')
  let seq = 0
  const apply = (record: object): void => {
    seq++
    const id = createHash('sha256').update(String(seq)).digest().subarray(0, 16)
    state.apply(record as BoardRecord, id, { shard: 0, seq, change: seq, leaf: seq })
  }
  const by = (n: number) => ({ key: Buffer.alloc(32, n), sig: Buffer.alloc(64), signed: Buffer.from('{"command":{}}') })
  const [mover, other] = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)]
  const post = (room: string, number: number, author: Buffer) =>
    apply({ type: RecordType.event, room, page: 'main', kind: 'note', seq: number, at, author, by: by(1), via: 'x' })
  for (const room of ['hall', 'side']) apply({ type: RecordType.roomCreated, room, at, visibility: 'public' })
  for (let n = 1; n <= 50; n++) post('hall', n, mover)
  for (let n = 1; n <= 50; n++) post('side', n, other)
  for (let n = 0; n < 20; n++) {
    const facts = { to: Buffer.alloc(32, n + 100).toString('base64url'), proof: '' }
    apply({ type: RecordType.act, room: '@registry', at, author: mover, op: 'identity.rotate', facts, by: by(n) })
  }
  const { events } = state.board
  const examined = [vi.spyOn(events, 'room'), vi.spyOn(events, 'author')]
  const begun = { row: state.changes.count, rotation: 0, given: 0, end: seq, size: seq, checkpoint }
  const context = { state, board: state.board } as unknown as ExportContext
  const request = { filter: { room: 'side' }, limit: 0, cursor: '', state: { ...begun, count: 0, log: 0, leaf: 0 } }
  expect(exportChunk(context, request)).toMatchObject({ ok: true, bytes: Buffer.alloc(0) })
  expect(examined.reduce((sum, { mock }) => sum + mock.calls.length, 0)).toBeLessThanOrEqual(100)
})
