import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeEach, expect, test, vi } from 'vitest'
import { boardDirectory, expectStartRefused, startBoard } from '../support/board-process.ts'
import { Client, person } from '../support/client.ts'
import { program } from '../support/program.ts'
import { runProgram } from '../support/run-program.ts'
import { welcomeAuthor } from '../support/welcome-author.ts'

vi.setConfig({ testTimeout: 900_000, hookTimeout: 900_000 })

const ada = person('ada')
let directory: string
let copy: string
const copies: string[] = []

afterAll(() => {
  for (const each of copies) rmSync(each, { recursive: true, force: true })
})

/** A stopped board with 4 entries whose data directory was copied when it had 3. */
beforeEach(async () => {
  directory = boardDirectory()
  copy = `${directory}.copy`
  copies.push(copy)
  const board = await startBoard({ directory })
  const client = await Client.of(board)
  await welcomeAuthor(client, ada)
  client.close()
  await board.stop()
  cpSync(directory, copy, { recursive: true })
  await posts(1)
})

async function posts(count: number): Promise<void> {
  const board = await startBoard({ directory })
  const client = await Client.of(board)
  for (let n = 0; n < count; n++) expect((await client.post(ada, { text: `post ${n}` })).status).toBe(200)
  client.close()
  await board.stop()
}

function putCopyBack(): void {
  rmSync(directory, { recursive: true })
  cpSync(copy, directory, { recursive: true })
}

test('an old copy of the data directory does not sign if the mark knows more, and the operator is told why', async () => {
  putCopyBack()
  const { code, output } = await expectStartRefused({ directory })
  expect(code).toBe(1)
  expect(output).toContain('this log has 3 entries, but a head of 4 was signed and published')
  expect(output).toContain('If it is an older copy, restore the newest data directory')
})

test('the same copy starts if the mark is gone: the mark is a second opinion, not the truth', async () => {
  putCopyBack()
  rmSync(`${directory}.mark`)
  await posts(1)
  expect(readFileSync(`${directory}.mark`, 'utf8').split('\n')[2]).toBe('4')
})

test('a copy that continued on its own is not taken for the log whose head was published', async () => {
  const mark = readFileSync(`${directory}.mark`)
  putCopyBack()
  rmSync(`${directory}.mark`)
  await posts(2)
  writeFileSync(`${directory}.mark`, mark)
  const { output: words } = await expectStartRefused({ directory })
  expect(words).toContain('the first 4 entries of this log are not those that were signed and published')
})

test('no new board is created next to a mark, as if a volume were not mounted, until the mark is moved away', async () => {
  const mark = readFileSync(`${directory}.mark`)
  rmSync(directory, { recursive: true })
  mkdirSync(directory)
  const { output } = await expectStartRefused({ directory })
  expect(output).toMatch(
    /There is no board in .*, but according to .*\.mark its log \S+\/log\/\d{4}a has 4 entries, and nothing was changed\. If its volume is not mounted/,
  )
  expect(readdirSync(directory).filter((name) => name !== 'LOCK')).toEqual([])
  expect(readFileSync(`${directory}.mark`)).toEqual(mark)
  rmSync(`${directory}.mark`)
  const board = await startBoard({ directory })
  await board.stop()
  expect(board.lines.filter((line) => line.includes('"board.created"'))).toMatchObject([
    expect.stringContaining(directory),
  ])
  expect(existsSync(`${directory}.mark`)).toBe(true)
})

test('the mark of another board is never overwritten: the start is refused, and fsck says why', async () => {
  const other = boardDirectory()
  await (await startBoard({ directory: other })).stop()
  const mark = readFileSync(`${directory}.mark`)
  const env = { MARK_FILE: `${directory}.mark` }
  const sentence = /\.mark is the mark of the log \S+ with 4 entries, which this board does not have\. .*correct it/
  expect((await expectStartRefused({ directory: other, env })).output).toMatch(sentence)
  const check = await runProgram(other, process.execPath, [program, 'fsck', '--data', other], { env })
  expect([check.code, check.output]).toEqual([1, expect.stringMatching(sentence)])
  expect(readFileSync(`${directory}.mark`)).toEqual(mark)
})

test('broadside restored says that it has no mark to compare with, if there is none', async () => {
  const restored = (env: Readonly<Record<string, string>>) =>
    runProgram(copy, process.execPath, [program, 'restored', '--data', copy], { env })
  const without = await restored({})
  expect([without.code, without.output]).toEqual([
    0,
    expect.stringContaining(`There is no mark at ${copy}.mark, so nothing here shows whether the board signed more`),
  ])
  const { code, errors } = await restored({ MARK_FILE: `${directory}.mark` })
  expect([code, errors]).toEqual([1, expect.stringContaining('this log has 3 entries, but a head of 4 was signed')])
})

test('a mark with a changed byte is reported, and prevents the start', async () => {
  const mark = readFileSync(`${directory}.mark`)
  mark[mark.length - 12]! ^= 1
  writeFileSync(`${directory}.mark`, mark)
  const { output: words } = await expectStartRefused({ directory })
  expect(words).toContain(`${directory}.mark should be the log's mark file, but cannot be parsed`)
  expect(words).not.toContain('older copy')
})

test('a mark left in the directory is moved beside it at the next start, and then stops an old copy', async () => {
  const inside = join(directory, '.mark')
  renameSync(`${directory}.mark`, inside)
  const board = await startBoard({ directory: `${directory}/` })
  await board.stop()
  expect(existsSync(inside)).toBe(false)
  putCopyBack()
  expect((await expectStartRefused({ directory: `${directory}/` })).output).toContain(
    'a head of 4 was signed and published',
  )
})

test('MARK_FILE sets another place for it', async () => {
  const file = `${directory}.elsewhere`
  copies.push(file)
  const board = await startBoard({ directory, env: { MARK_FILE: file } })
  await board.stop()
  expect(readFileSync(file, 'utf8')).toBe(readFileSync(`${directory}.mark`, 'utf8'))
})
