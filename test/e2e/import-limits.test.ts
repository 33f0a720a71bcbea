/** What an import says about the limits that will slow it down, before it begins. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { boardDirectory } from '../support/board-process.ts'
import { NetworkLimitedBoard, operator } from '../support/network-limited-board.ts'
import { program } from '../support/program.ts'
import { runProgram } from '../support/run-program.ts'

const folder = boardDirectory()
const corpus = join(folder, 'corpus.jsonl')
let limitedBoard: NetworkLimitedBoard

beforeAll(async () => {
  limitedBoard = await NetworkLimitedBoard.start(boardDirectory())
  const rows = Array.from({ length: 40 }, (_, n) => ({
    ...{ id: `m${n}`, room: `imported-${n % 2}`, author: `author ${n % 30}` },
    ...{ parent: null, title: null, text: `text ${n}` },
  }))
  writeFileSync(corpus, rows.map((row) => `${JSON.stringify(row)}\n`).join(''))
})
afterAll(() => limitedBoard.client.close())

const run = () =>
  runProgram(folder, process.execPath, [
    program,
    'import',
    corpus,
    '--url',
    limitedBoard.client.address,
    '--in-flight',
    '1',
  ])

test('an import estimates how long limits make it take and names the limit, and proceeds once an operator raised it', async () => {
  const limited = await run()
  // 30 authors, 4 at once, then one an hour.
  expect(limited.errors).toMatch(/make the import take at least 26 h 00 min: 30 new identities from 127\.0\.0\.1/)
  expect(limited.errors).toContain('limits.grant')
  expect(limited.code).toBe(1)
  expect(limited.output).toContain('4 posted')
  const grant = { operation: 'limits.grant', target: '127.0.0.1', ttl: 600, data: '{"schema":1,"exempt":true}' }
  expect((await limitedBoard.command('127.0.0.1', operator, grant)).status).toBe(200)
  const whole = await run()
  expect(whole.errors).not.toContain('make the import take')
  expect(whole.output).toContain('36 posted')
  expect(whole.code).toBe(0)
})
