/** The steps of /agents, executed as shown: in a fresh directory, from nothing to a signed post. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { missingProgram, skipNote, skipWithout } from '../peers/peers.ts'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { Client } from '../support/client.ts'
import { rpc } from '../support/oauth-client.ts'
import { program } from '../support/program.ts'
import { runProgram } from '../support/run-program.ts'
import { scratchDirectory } from '../support/scratch.ts'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 })

let board: Board
let client: Client
let page = ''

beforeAll(async () => {
  board = await startBoard({ directory: boardDirectory() })
  client = await Client.of(board)
  page = (await client.get('/agents')).text
})
afterAll(async () => {
  client.close()
  await board.kill()
})

/** The blocks of code under a heading, as a person copies them. */
function blocksOf(id: string): string[] {
  const section = page.slice(page.indexOf(`<h2 id="${id}">`)).split('</section>')[0]!
  return [...section.matchAll(/data-copy="([^"]*)"/g)].map(([, text]) =>
    text!.replace(/&(quot|lt|gt|amp|#39|#34);/g, (_, name: string) => named[name]!),
  )
}

const named: Readonly<Record<string, string>> = { '#34': '"', quot: '"', lt: '<', gt: '>', amp: '&', '#39': "'" }

async function newest(): Promise<{ text: string }> {
  const { events } = (await client.get('/api/events?room=lobby&limit=1')).data as unknown as {
    events: { text: string }[]
  }
  return events[0]!
}

const ways = [
  ['javascript', 'agent.mjs', process.execPath, 'Hello from JavaScript.'],
  ['python', 'agent.py', 'python3', 'Hello from Python.'],
] as const
const missing = missingProgram('python3') ?? missingProgram('curl')

test.skipIf(skipWithout(missing)).each(ways)(
  `from nothing to a signed post in %s takes five lines${skipNote(missing)}`,
  async (id, file, run, text) => {
    const folder = scratchDirectory()
    const [code] = blocksOf(id)
    const lines = code!.split('\n')
    expect(lines).toHaveLength(5)
    const fetching = await runProgram(folder, 'sh', ['-c', lines[0]!.replace(/^(\/\/|#) /, '')])
    expect([fetching.code, fetching.errors]).toEqual([0, ''])
    writeFileSync(join(folder, file), code!)
    const { code: exit, output, errors } = await runProgram(folder, run, [file])
    expect([exit, errors, output]).toEqual([0, '', expect.stringMatching(/^posted [0-9a-f]{32}\n$/)])
    expect(await newest()).toMatchObject({ text })
  },
)

test.skipIf(skipWithout(missing))(
  `from nothing to a signed post in a shell takes two commands${skipNote(missing)}`,
  async () => {
    const folder = scratchDirectory()
    const [code] = blocksOf('shell')
    expect(code!.split('\n')).toHaveLength(2)
    const { code: exit, output, errors } = await runProgram(folder, 'sh', ['-ec', code!])
    expect([exit, errors]).toEqual([0, ''])
    expect(JSON.parse(output)).toMatchObject({ event: { text: 'Hello from a shell.' } })
    expect(await newest()).toMatchObject({ text: 'Hello from a shell.' })
    // The same identity again, with numbers, and members of data by their names.
    const again = ['broadside.py', board.address, 'docs.create', 'title=A plan', 'text=One.']
    const made = await runProgram(folder, 'python3', again)
    expect(JSON.parse(made.output)).toMatchObject({ doc: { title: 'A plan' } })
    const listed = await runProgram(folder, 'python3', [
      'broadside.py',
      board.address,
      'docs.list',
      'own=true',
      'limit=5',
    ])
    expect((JSON.parse(listed.output) as { docs: unknown[] }).docs).toHaveLength(1)
    const refused = await runProgram(folder, 'python3', ['broadside.py', board.address, 'post', 'text='])
    expect([refused.code, refused.errors]).toEqual([1, expect.stringContaining('missing_field')])
    const usage = await runProgram(folder, 'python3', ['broadside.py'])
    expect([usage.code, usage.errors]).toEqual([2, expect.stringContaining('usage: ')])
  },
)

test('with the package it takes two commands too', async () => {
  const folder = scratchDirectory()
  const [, code] = blocksOf('shell')
  const here = { PATH: `${folder}:${process.env.PATH}` }
  writeFileSync(join(folder, 'broadside'), `#!/bin/sh\nexec ${process.execPath} ${program} "$@"\n`, { mode: 0o755 })
  const { code: exit, output } = await runProgram(folder, 'sh', ['-ec', code!], { env: here })
  expect([exit, output]).toEqual([0, expect.stringMatching(/^event {4}[0-9a-f]{32}$/m)])
  expect(await newest()).toMatchObject({ text: 'Hello from a shell.' })
})

test('the MCP address answers, with every set that the page names', async () => {
  expect(blocksOf('mcp')[0]).toBe(`${board.address}/mcp`)
  const queries = [...page.matchAll(/<code>\/mcp(\?[^<]*)?<\/code>/g)].map(([, query = '']) => query)
  expect(queries.length).toBeGreaterThan(2)
  for (const query of queries)
    expect([query, (await rpc(board.address, 'tools/list', {}, { query })).result.tools]).toEqual([
      query,
      expect.any(Array),
    ])
  expect((await client.get('/for-agents')).headers['content-type']).toContain('text/plain')
})
