import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { openCheckpoint } from '../../storage/checkpoint.ts'
import { parseVkey, type VerifierKey } from '../../storage/note.ts'
import { Board, boardDirectory, expectStartRefused, startBoard, tryStartBoard } from '../support/board-process.ts'
import { Client, person } from '../support/client.ts'
import { patience } from '../support/patience.ts'
import { welcomeAuthor, welcomeLeaves } from '../support/welcome-author.ts'

vi.setConfig({ testTimeout: 900_000, hookTimeout: 900_000 })

const ada = person('ada')
let folder: string
/** One board that is a witness for the other. */
let witness: Board
let board: Board
let directory: string
let policy: string
let logKey: VerifierKey
let witnessKey: VerifierKey

const text = async (address: string, path: string): Promise<string> => (await fetch(`${address}${path}`)).text()
const keyOf = (vkey: string): VerifierKey => {
  const parsed = parseVkey(vkey.trim())
  if (!parsed.ok) throw new Error(parsed.problem)
  return parsed.value
}
const boardOf = ({ directory, port }: Board) => ({ directory, port })
const signers = async () => {
  const opened = openCheckpoint(await checkpoint(), logKey, [witnessKey])
  return opened.ok ? opened.value.signedBy : []
}
const checkpoint = () => text(board.address, `/${logKey.name.slice(logKey.name.indexOf('/') + 1)}/checkpoint`)

/** Entries of the log. */
let size = welcomeLeaves

async function posts(count: number): Promise<void> {
  const client = await Client.of(board)
  for (let n = 0; n < count; n++) expect((await client.post(ada, { text: `${n}` })).status).toBe(200)
  client.close()
  size += count
}

/** The newest head is served. */
const published = () => vi.waitFor(async () => expect(await checkpoint()).toContain(`\n${size}\n`), patience)

/** The newest head is served with the witness's cosignature; if that took longer than the board waits, a newer one is. */
async function cosigned(): Promise<void> {
  await published()
  while ((await signers()).length !== 2) {
    await posts(1)
    await published()
  }
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'broadside-witness-'))
  directory = boardDirectory()
  // The board has to exist before anybody can trust its key; its port stays the same, because its name contains it.
  board = await startBoard({ directory })
  const port = board.port
  logKey = keyOf(await text(board.address, '/log/vkey'))
  const logs = join(folder, 'logs')
  writeFileSync(logs, `log ${(await text(board.address, '/log/vkey')).trim()}\nquorum none\n`)
  const client = await Client.of(board)
  await welcomeAuthor(client, ada)
  client.close()
  await board.stop()
  witness = await startBoard({ directory: boardDirectory(), env: { WITNESS_LOGS: logs } })
  const vkey = (await text(witness.address, '/witness/vkey')).trim()
  witnessKey = keyOf(vkey)
  policy = join(folder, 'policy')
  writeFileSync(policy, `witness w ${vkey} ${witness.address}/witness\nquorum w\n`)
  board = await startBoard({ directory, port, env: { WITNESS_POLICY: policy } })
})
afterAll(() => rmSync(folder, { recursive: true }))

test('the checkpoint has the witness’s cosignature, and the published policy names it', async () => {
  await cosigned()
  const opened = openCheckpoint(await checkpoint(), logKey, [witnessKey])
  expect(opened.ok && opened.value.signedBy.map(({ name }) => name)).toEqual([logKey.name, witnessKey.name])
  const shown = await text(board.address, '/log/policy')
  expect(shown).toContain(`witness w `)
  expect(shown.trimEnd().endsWith('quorum w')).toBe(true)
})

test('each new head goes through the witness, and posts do not wait for it', async () => {
  await posts(5)
  await cosigned()
  await witness.kill()
  await posts(3)
  await published()
  const alone = openCheckpoint(await checkpoint(), logKey, [witnessKey])
  expect(alone.ok && alone.value.signedBy).toHaveLength(1)
})

test('the witness’s cosignature is served right after a restart, while the witness is away', async () => {
  witness = await startBoard({ ...boardOf(witness), env: { WITNESS_LOGS: join(folder, 'logs') } })
  await posts(1)
  await cosigned()
  await witness.kill()
  const before = await checkpoint()
  await board.stop()
  board = await startBoard({ ...boardOf(board), env: { WITNESS_POLICY: policy } })
  expect(await checkpoint()).toBe(before)
  const { data } = JSON.parse(await text(board.address, '/api/log/witnesses')) as {
    data: { published: object; quorum: string; witnesses: object[] }
  }
  expect(data).toMatchObject({
    published: { tree_size: size, cosigned: 1 },
    quorum: 'quorum w',
    witnesses: [{ name: 'w', answer: 'silent', tree_size: size, problem: expect.any(String) }],
  })
  const page = await text(board.address, '/log')
  expect(page).toContain(`<code>${before}</code>`)
  expect(page).toMatch(new RegExp(`<code>w</code></th><td><span class="tag warm">silent</span>.*<td>${size}, <time`))
})

test('an old copy does not sign if a witness knows more, though the mark is gone', async () => {
  witness = await startBoard({
    directory: witness.directory,
    port: witness.port,
    env: { WITNESS_LOGS: join(folder, 'logs') },
  })
  const port = board.port
  await board.stop()
  const copy = join(folder, 'copy')
  const copied = size
  cpSync(directory, copy, { recursive: true })
  board = await startBoard({ directory, port, env: { WITNESS_POLICY: policy } })
  await posts(4)
  await cosigned()
  await board.stop()
  rmSync(directory, { recursive: true })
  rmSync(`${directory}.mark`)
  cpSync(copy, directory, { recursive: true })
  const start = () => tryStartBoard({ directory, port, env: { WITNESS_POLICY: policy } })
  let found = await start()
  // A witness that answers too late is not waited for.
  for (let n = 0; n < 10 && found instanceof Board; n++) {
    await found.kill()
    found = await start()
  }
  if (found instanceof Board) throw new Error('the copy started')
  expect(found.code).toBe(1)
  expect(found.output).toContain(
    `the witness w has signed a head of ${size} entries of this log, which has ${copied} entries here`,
  )
})

test('an invalid policy is reported with its line', async () => {
  const wrong = join(folder, 'wrong')
  writeFileSync(wrong, 'witness w nonsense\n')
  const { output } = await expectStartRefused({ directory: boardDirectory(), env: { WITNESS_POLICY: wrong } })
  expect(output).toContain(`WITNESS_POLICY names ${wrong}, which is not a tlog-policy: line 1: `)
})
