/**
 * Every example of the docs runs as it is, in a shell, in JavaScript and in Python, with only the small file that the board serves for each
 * language; invented ids are replaced by real ones.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { operations } from '../../actors/operations.ts'
import type { Signer } from '../../src/cli/sign.ts'
import { exampleCode } from '../../src/docs/operation-examples.ts'
import { missingProgram, skipNote, skipWithout } from '../peers/peers.ts'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { Client, person, seedOf } from '../support/client.ts'
import { setups, World } from '../support/operation-setups.ts'
import { randomPart } from '../support/random-part.ts'
import { runProgram } from '../support/run-program.ts'

vi.setConfig({ testTimeout: 900_000, hookTimeout: 900_000 })

const operator = person('the operator')
let board: Board
let client: Client
let world: World
let folder = ''
let count = 0

beforeAll(async () => {
  board = await startBoard({
    directory: boardDirectory(),
    env: { OPERATORS: operator.id, SHARDS: '2', BROADSIDE_LOOPBACK: '1' },
  })
  client = await Client.of(board)
  world = new World(client, operator)
  await world.post()
  folder = mkdtempSync(join(tmpdir(), 'broadside-docs-'))
})
afterAll(() => {
  client.close()
  rmSync(folder, { recursive: true, force: true })
})

type Keys = { readonly der: Buffer; readonly seed: Buffer; readonly pem: string }

function keysOf(signer: Signer): Keys {
  const seed = seedOf(signer)
  const der = Buffer.concat([Buffer.from('302e020100300506032b657004220420', 'hex'), seed])
  const pem = `-----BEGIN PRIVATE KEY-----\n${der.toString('base64')}\n-----END PRIVATE KEY-----\n`
  return { der, seed, pem }
}

/** A home directory with the board's file for a language and the key in the form that it reads. */
async function home(path: string, library: string, files: Readonly<Record<string, string | Buffer>>): Promise<string> {
  const own = join(folder, String(++count))
  mkdirSync(own)
  const { status, text } = await client.get(path)
  expect(status).toBe(200)
  writeFileSync(join(own, library), text)
  for (const [name, content] of Object.entries(files)) writeFileSync(join(own, name), content, { mode: 0o600 })
  return own
}

const languages = [
  [
    'curl',
    '/docs/broadside.sh',
    'broadside.sh',
    'sh',
    'example.sh',
    missingProgram('openssl') ?? missingProgram('curl'),
  ],
  ['javascript', '/client/v1.js', 'broadside.mjs', process.execPath, 'example.mjs', undefined],
  ['python', '/client/broadside.py', 'broadside.py', 'python3', 'example.py', missingProgram('python3')],
] as const

describe.each(languages)('in %s', (language, path, library, program, file, missing) => {
  test.skipIf(skipWithout(missing)).each(randomPart(operations).map((each) => [each.name, each] as const))(
    `%s${skipNote(missing)}`,
    async (name, operation) => {
      const { signer, fields = {}, meanwhile } = await setups[name]!(world)
      const code = exampleCode({ ...operation, example: { ...operation.example, ...fields } }, board)
      if (code === undefined) return expect(operation.example).toHaveProperty('proof')
      const { pem, seed } = keysOf(signer)
      const json = JSON.stringify({ type: 'broadside-key', seed: seed.toString('base64url') })
      const own = await home(path, library, { 'me.pem': pem, 'me.json': json })
      writeFileSync(join(own, file), code[language])
      const running = runProgram(own, program, [file])
      let isEnded = false
      void running.finally(() => {
        isEnded = true
      })
      while (meanwhile !== undefined && !isEnded) await Promise.race([running, meanwhile()])
      const { code: exit, output, errors } = await running
      expect([exit, errors], output).toEqual([0, ''])
      expect(output).not.toBe('')
    },
  )
})

const older = [
  [
    'JavaScript',
    'broadside.mjs',
    process.execPath,
    "import { call } from './broadside.mjs'\nconsole.log((await call({ operation: 'post', text: 'older', data: '{\"schema\":1,\"format\":\"markdown\"}' })).event.author.id)",
    undefined,
  ],
  [
    'Python',
    'broadside.py',
    'python3',
    'from broadside import call\nprint(call(operation="post", text="older", data=\'{"schema":1,"format":"markdown"}\')["event"]["author"]["id"])',
    missingProgram('python3'),
  ],
] as const

test.skipIf(skipWithout(missingProgram('python3'))).each(older)(
  'a program for the previously served file, in %s, continues to work: the same function, the same key',
  async (_language, library, program, code) => {
    const signer = person(`older ${library}`)
    const { pem, seed } = keysOf(signer)
    const own = await home(`/docs/${library}`, library, { 'agent.pem': pem, 'agent.key': seed })
    const file = `older.${library.split('.')[1]}`
    writeFileSync(join(own, file), code)
    const { code: exit, output, errors } = await runProgram(own, program, [file])
    expect([exit, errors, output.trim()]).toEqual([0, '', signer.id])
  },
)
