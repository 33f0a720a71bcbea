import { randomBytes } from 'node:crypto'
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { authorSigner, importSeedOf } from '../../../src/cli/key-file.ts'
import { main } from '../../../src/cli/main.ts'
import { capturedTerminal } from './captured-terminal.ts'
import { type SmallBoard, startSmallBoard } from './small-board.ts'

let board: SmallBoard
let directory: string

/** Hours that the program waited for; in the test they pass immediately. */
let hoursWaited: number[]

async function wait(ms: number): Promise<void> {
  if (ms >= 3_600_000) hoursWaited.push(ms / 3_600_000)
  await sleep(ms < 3_600_000 ? ms : 10)
}

beforeEach(async () => {
  hoursWaited = []
  board = await startSmallBoard()
  directory = mkdtempSync(join(tmpdir(), 'broadside-import-'))
})
afterEach(() => board.close())

type Row = { id: string; room?: string; author?: string; parent?: string | null; title?: string | null; text?: string }

function corpus(rows: readonly (Row | string)[], name = 'corpus.jsonl'): string {
  const lines = rows.map((row) =>
    typeof row === 'string'
      ? row
      : JSON.stringify({ room: 'lobby', author: 'ada', parent: null, title: null, text: `text of ${row.id}`, ...row }),
  )
  const path = join(directory, name)
  const text = `${lines.join('\n')}\n`
  writeFileSync(path, name.endsWith('.gz') ? gzipSync(text) : text)
  return path
}

async function runImport(path: string, ...options: string[]) {
  const terminal = { ...capturedTerminal(), wait }
  const code = await main(['import', path, '--url', board.url, '--seed', 'a test', ...options], terminal)
  return { code, ...terminal.said }
}

/** Text of each post -> text of the post it answers. */
function answers(): Record<string, string | undefined> {
  const texts = new Map(board.posts.map(({ eventId, command }) => [eventId, command.text]))
  return Object.fromEntries(board.posts.map(({ command }) => [command.text!, texts.get(command.reply_to ?? '')]))
}

test.each([false, true])(
  'a deep and wide corpus arrives complete, each reply under its parent, in any order of answers (older board: %s)',
  async (isOlder) => {
    board.isOlder = isOlder
    const rows: Row[] = Array.from({ length: 400 }, (_, n) => ({
      id: `m${n}`,
      author: `author ${n % 17}`,
      parent: n < 5 ? null : `m${(n * 7919) % n}`,
    }))
    const { code, out, err } = await runImport(corpus(rows, 'corpus.jsonl.gz'), '--in-flight', '32')
    expect(err.includes('This board takes one command at a time')).toBe(isOlder)
    expect(out).toContain('400 posted')
    expect(code).toBe(0)
    expect(board.posts).toHaveLength(400)
    const expected = Object.fromEntries(
      rows.map(({ id, parent }) => [`text of ${id}`, parent ? `text of ${parent}` : undefined]),
    )
    expect(answers()).toEqual(expected)
    if (isOlder) expect(board.openMax()).toBeGreaterThan(8)
    expect(board.openMax()).toBeLessThanOrEqual(isOlder ? 32 : 2)
  },
)

test('a truncated file is reported with what to do, and its report is printed', async () => {
  const rows = Array.from({ length: 300 }, (_, n) => ({
    id: `m${n}`,
    text: `text ${n} ${randomBytes(20).toString('hex')}`,
  }))
  const path = corpus(rows, 'cut.jsonl.gz')
  const whole = readFileSync(path)
  writeFileSync(path, whole.subarray(0, whole.length - 500))
  const { code, out, err } = await runImport(path)
  expect(err).toBe(
    `${path} cannot be read to its end (unexpected end of file). Get the complete file and run this again.\n`,
  )
  expect(out).toContain('posted in')
  expect(code).toBe(1)
  writeFileSync(path, whole)
  expect((await runImport(path)).code).toBe(0)
  expect(new Set(board.posts.map(({ command }) => command.text)).size).toBe(300)
})

test('a directory in place of the progress file is reported', async () => {
  const { code, err } = await runImport(corpus([{ id: 'a' }]), '--state', directory)
  expect(err).toContain(`Progress cannot be saved in ${directory} (EISDIR`)
  expect(err).toContain('--state FILE')
  expect(code).toBe(1)
})

test('children may precede their parents in the file', async () => {
  await runImport(corpus([{ id: 'c', parent: 'b' }, { id: 'b', parent: 'a' }, { id: 'a' }]))
  expect(answers()).toEqual({ 'text of a': undefined, 'text of b': 'text of a', 'text of c': 'text of b' })
})

test('each author signs with the key derived from seed and name, and requests a fitting handle once', async () => {
  await runImport(
    corpus([
      { id: '1', author: 'Ada' },
      { id: '2', author: 'Ada' },
      { id: '3', author: 'two words' },
    ]),
  )
  const seed = importSeedOf('a test')
  expect(board.posts.map(({ authorId }) => authorId)).toEqual(
    expect.arrayContaining([authorSigner(seed, 'Ada').id, authorSigner(seed, 'two words').id]),
  )
  const handles = board.posts.map(({ command }) => command.handle).filter((handle) => handle !== undefined)
  expect(handles).toEqual(['ada'])
})

test('a title is the first paragraph of the text', async () => {
  await runImport(corpus([{ id: '1', title: 'Head', text: 'body' }]))
  expect(board.posts[0]?.command.text).toBe('Head\n\nbody')
})

test('a text too long is reported and counted, and its children go to the nearest posted ancestor', async () => {
  const long = 'é'.repeat(16_385)
  const path = corpus([
    { id: 'root' },
    { id: 'long-1', parent: 'root', text: long },
    { id: 'long-2', parent: 'long-1', text: long },
    { id: 'child', parent: 'long-2' },
    { id: 'long-root', text: long },
    { id: 'orphan', parent: 'long-root' },
    { id: 'exact', text: 'x'.repeat(32_768) },
  ])
  const { code, out } = await runImport(path)
  expect(answers()).toEqual({
    'text of root': undefined,
    'text of child': 'text of root',
    'text of orphan': undefined,
    ['x'.repeat(32_768)]: undefined,
  })
  expect(out).toContain('3 too long (over 32,768 bytes), not posted:\n  long-1 (32770 bytes)\n  long-2')
  expect(out).toContain('1 reply was attached to the nearest posted ancestor')
  expect(out).toContain('1 reply starts a thread')
  expect(code).toBe(0)
})

test('bad lines are reported by number and reason, the rest is posted, and the exit code says that something is missing', async () => {
  const path = corpus([
    { id: 'good' },
    '{"id": 1}',
    'not json',
    '',
    '[]',
    { id: 'good' },
    { id: 'nul', text: 'a\0b' },
    { id: 'blank', text: ' \u200b\n' },
    { id: 'bad-room', room: 'Bad Room' },
    { id: 'late', parent: 'nowhere' },
    { id: 'narcissus', parent: 'narcissus' },
  ])
  const { code, out } = await runImport(path)
  expect(code).toBe(1)
  expect(out).toContain('7 lines that are not messages')
  for (const line of [2, 3, 5, 6, 7, 8, 9]) expect(out).toContain(`  line ${line}: `)
  expect(Object.keys(answers()).sort()).toEqual(['text of good', 'text of late', 'text of narcissus'])
})

test('a version from an export gives its format and kind, so that it inherits none from the previous version', async () => {
  const said = (fields: object) =>
    JSON.stringify({ type: 'event', room: 'lobby', page: 'main', kind: 'note', author: { id: 'ada' }, ...fields })
  const [first, second] = ['a', 'b'].map((byte) => byte.repeat(32))
  const path = corpus([
    said({ event_id: first, text: '*first*', format: 'markdown' }),
    said({ event_id: second, text: '*second*', format: 'text', supersedes: first }),
    said({ event_id: 'c'.repeat(32), text: 'reply', reply_to: first, actual_page: 'side' }),
    said({ event_id: 'd'.repeat(32), text: '*third*', format: 'text', actual_format: 'markdown', supersedes: first }),
    said({ event_id: 'e'.repeat(32), text: 'fourth', kind: 'note', supersedes: first }),
    said({ event_id: 'f'.repeat(32), text: 'alone', kind: 'note', actual_kind: 'request', supersedes: '1'.repeat(32) }),
  ])
  expect(await runImport(path)).toMatchObject({ code: 0 })
  const [original, version, reply, third, fourth, alone] = board.posts
  expect(JSON.parse(original!.command.data!)).toEqual({ schema: 1, format: 'markdown' })
  expect(JSON.parse(version!.command.data!)).toEqual({ schema: 1, format: 'text', supersedes: original!.eventId })
  expect(reply!.command).toMatchObject({ text: 'reply', page: 'side' })
  expect(JSON.parse(third!.command.data!)).toMatchObject({ format: 'markdown' })
  // A version keeps the kind of its original; one without its original has the kind that it was shown with.
  expect(fourth!.command).toMatchObject({ text: 'fourth' })
  expect(fourth!.command).not.toHaveProperty('kind')
  expect(alone!.command).toMatchObject({ text: 'alone', kind: 'request' })
})

test('a refused message is reported with the reason and its children are kept', async () => {
  board.intercept = ({ text }) => (text === 'text of b' ? { status: 403, code: 'forbidden' } : undefined)
  const { code, out } = await runImport(corpus([{ id: 'a' }, { id: 'b', parent: 'a' }, { id: 'c', parent: 'b' }]))
  expect(code).toBe(1)
  expect(out).toContain('b: The board refused: refused with forbidden (forbidden)')
  expect(answers()).toEqual({ 'text of a': undefined, 'text of c': 'text of a' })
})

test('429 is obeyed, says how to raise the rate, and loses nothing', async () => {
  let refusals = 3
  board.intercept = () => {
    refusals -= 1
    return refusals >= 0 ? { status: 429, code: 'rate_limited', retryAfter: 0 } : undefined
  }
  const { code, err } = await runImport(corpus(Array.from({ length: 20 }, (_, n) => ({ id: `m${n}` }))))
  expect(err).toContain('BROADSIDE_LIMITS=off')
  expect(code).toBe(0)
  expect(board.posts).toHaveLength(20)
})

test('a quota that lasts for hours ends the import with a sentence, and the next run continues', async () => {
  const path = corpus([{ id: 'a' }, { id: 'b', parent: 'a' }])
  board.intercept = ({ text }) =>
    text === 'text of b' ? { status: 429, code: 'quota_exhausted', retryAfter: 7200 } : undefined
  const first = await runImport(path)
  expect(first.code).toBe(1)
  expect(first.err).toContain('2 h 00 min')
  board.intercept = () => undefined
  const second = await runImport(path)
  expect(second.out).toContain('1 was posted by an earlier run')
  expect(answers()).toEqual({ 'text of a': undefined, 'text of b': 'text of a' })
})

test('a board out of request ids for hours is waited for, and the wait is announced', async () => {
  let isFull = true
  board.intercept = ({ text }) => {
    if (!isFull || text !== 'text of b') return undefined
    isFull = false
    return { status: 429, code: 'overloaded', retryAfter: 82_800 }
  }
  const { code, out, err } = await runImport(corpus([{ id: 'a' }, { id: 'b', parent: 'a' }, { id: 'c', parent: 'b' }]))
  expect(code).toBe(0)
  expect(hoursWaited).toEqual([23])
  expect(err).toContain(
    'refused with overloaded (overloaded) Waiting 23 h 00 min, as requested. You can stop the import',
  )
  expect(out).toContain('23 h 00 min were spent waiting as the board asked.')
  expect(answers()).toEqual({ 'text of a': undefined, 'text of b': 'text of a', 'text of c': 'text of b' })
})

test('whatever prefix of the progress file a kill leaves, the next run posts nothing twice', async () => {
  const rows: Row[] = Array.from({ length: 30 }, (_, n) => ({ id: `m${n}`, parent: n === 0 ? null : `m${n >> 1}` }))
  const path = corpus(rows)
  const state = join(directory, 'state')
  await runImport(path, '--state', state)
  const whole = readFileSync(state)
  const before = answers()
  for (const cut of [0, 1, 40, 80, 200, 333, whole.length - 1, whole.length]) {
    writeFileSync(state, whole.subarray(0, cut))
    const { code } = await runImport(path, '--state', state)
    expect(code).toBe(0)
    expect(board.posts).toHaveLength(30)
    expect(answers()).toEqual(before)
    expect(readFileSync(state).length).toBe(whole.length)
  }
})

test('progress made with another seed is refused', async () => {
  const path = corpus([{ id: 'a' }])
  await runImport(path)
  const terminal = capturedTerminal()
  expect(await main(['import', path, '--url', board.url, '--seed', 'another'], terminal)).toBe(1)
  expect(terminal.said.err).toContain('--state NEWFILE')
})

test('without a board there is one sentence that says what to do', async () => {
  const terminal = capturedTerminal()
  expect(await main(['import', corpus([{ id: 'a' }]), '--url', 'http://127.0.0.1:9'], terminal)).toBe(1)
  expect(terminal.said.err).toMatch(/^No board answers at http:\/\/127\.0\.0\.1:9 .*broadside serve.*\n$/)
})
