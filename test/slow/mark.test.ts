import { cpSync, existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeEach, expect, test, vi } from 'vitest'
import { boardDirectory, expectStartRefused, startBoard } from '../support/board-process.ts'
import { Client, person } from '../support/client.ts'
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
  expect(output).toContain('Restore the newest data directory')
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

test('a new board in the same place has another key, so the mark of the old one does not stop it', async () => {
  rmSync(directory, { recursive: true })
  await posts(1)
  expect(existsSync(`${directory}.mark`)).toBe(true)
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
