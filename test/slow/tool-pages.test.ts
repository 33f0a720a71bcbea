/** Every listing of the real lists has a page that opens, under the address that the API gives, and each older link leads there. */
import { mkdtempSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { readArguments } from '../../src/cli/command-line.ts'
import { createKeyFile } from '../../src/cli/key-file.ts'
import { toolsCommand } from '../../src/cli/tools.ts'
import { importTools } from '../../src/cli/tools-import.ts'
import { capturedTerminal } from '../src/cli/captured-terminal.ts'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { Client } from '../support/client.ts'
import { chooseSeed, randomFrom } from '../support/load.ts'
import { randomPart } from '../support/random-part.ts'
import { realData } from '../support/real-data.ts'

vi.setConfig({ testTimeout: 900_000, hookTimeout: 900_000 })

const lists = realData('tools')
/** With the number of listings in each. */
const files = randomPart([
  ['x402-resources.jsonl', 2_284],
  ['mpp-services.jsonl', 1_590],
  ['mcp-servers.jsonl', 5_872],
] as const)
const names = files.map(([name]) => name)
const count = files.reduce((sum, [, listings]) => sum + listings, 0)

describe.skipIf(lists.isAbsent)(`real lists${lists.note}`, () => {
  let board: Board
  let client: Client
  let ids: string[]
  /** Those whose pages are opened: all with characters that are rare in ids, and a twelfth of the others, chosen anew each time. */
  let opened: readonly string[]
  /** By id, where its page opens. */
  const addresses = new Map<string, string>()

  beforeAll(async () => {
    const keyFile = join(mkdtempSync(join(tmpdir(), 'broadside-lists-')), 'operator.json')
    const operator = createKeyFile(keyFile)
    board = await startBoard({ directory: boardDirectory(), env: { OPERATORS: operator.id } })
    client = await Client.of(board)
    for (const name of names) {
      const { args } = readArguments(toolsCommand, [
        'import',
        join(lists.path, name),
        '--key',
        keyFile,
        '--url',
        board.address,
      ])
      expect(await importTools(join(lists.path, name), args, capturedTerminal())).toBe(0)
    }
    ids = names.flatMap((name) =>
      readFileSync(join(lists.path, name), 'utf8')
        .trimEnd()
        .split('\n')
        .map((line) => (JSON.parse(line) as { id: string }).id),
    )
    const random = randomFrom(chooseSeed('tools whose pages are opened'))
    opened = randomPart(ids.filter((id) => !/^[\w./:-]+$/.test(id) || random(12) === 0))
  })
  afterAll(async () => {
    client?.close()
    await board?.stop()
  })

  /** Checks each id in turn, several at a time; returns the failures. */
  async function wrong(among: readonly string[], check: (id: string) => Promise<unknown>): Promise<unknown[]> {
    const found: unknown[] = []
    const left = among.values()
    const worker = async (): Promise<void> => {
      for (const id of left) {
        const problem = await check(id)
        if (problem !== undefined) found.push(problem)
      }
    }
    await Promise.all(Array.from({ length: 8 }, worker))
    return found
  }

  test('each has a name and a unique address', async () => {
    expect(ids).toHaveLength(count)
    const nameless = await wrong(ids, async (id) => {
      const found = await client.getWithRetries(`/api/tool?id=${encodeURIComponent(id)}`)
      const { url, name } = (found.data as { tool?: { url: string; name: string } }).tool ?? { url: '', name: '' }
      addresses.set(id, url)
      return name !== '' && url !== '' ? undefined : [id, found.text.slice(0, 100)]
    })
    expect(nameless).toEqual([])
    expect(new Set(addresses.values()).size).toBe(count)
  })

  test('they open at the address that tools.get gives', async () => {
    const dead = await wrong(opened, async (id) => {
      const { status, text } = await client.getWithRetries(addresses.get(id)!)
      const isIt = text.includes(`href="/api/tool?id=${encodeURIComponent(id).replaceAll("'", '&#39;')}"`)
      return status === 200 && isIt ? undefined : [id, addresses.get(id), status]
    })
    expect(dead).toEqual([])
  })

  test('every form of link ever given out for them leads to that address', async () => {
    const dead = await wrong(opened, async (id) => {
      const segments = id.split('/').map((each) => encodeURIComponent(each).replace(/%3A/g, ':').replace(/%40/g, '@'))
      for (const old of [encodeURIComponent(id), segments.join('/')]) {
        const { status, headers } = await client.get(`/tools/${old}`)
        if (status !== 308 || headers.location !== addresses.get(id)) return [id, old, status, headers.location]
      }
      return undefined
    })
    expect(dead).toEqual([])
  })
})
