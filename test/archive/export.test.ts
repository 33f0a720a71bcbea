/** A second reader of exports, written in Python from storage/README.md alone, recomputes what they prove, and finds changes. */
import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { operations } from '../../actors/operations.ts'
import { readFixture, type Said, story } from '../fixtures/fixture.ts'
import { missingProgram, skipNote, skipWithout } from '../peers/peers.ts'
import { boardDirectory, startBoard } from '../support/board-process.ts'
import { Client, person } from '../support/client.ts'
import { setups, World } from '../support/operation-setups.ts'
import { scratchDirectory } from '../support/scratch.ts'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 })

type Report = {
  readonly counts: Readonly<Record<string, number>>
  readonly signatures: number
  readonly leaves: number
  readonly claimed: number
  readonly problems: readonly string[]
}

const missing =
  missingProgram('python3') ??
  (spawnSync('python3', ['-c', 'import cryptography']).status === 0
    ? undefined
    : 'python3-cryptography is missing; install it as root with: sh test/peers/install.sh')
const skipped = skipWithout(missing)
const note = skipNote(missing)
const told = story()
let files = 0

function read(text: string, vkey: string): Report {
  const file = join(scratchDirectory(), `export-${++files}.jsonl`)
  writeFileSync(file, text)
  const args = [join(import.meta.dirname, 'export.py'), file, '--vkey', vkey]
  const { status, stdout, stderr } = spawnSync('python3', args, { encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 })
  if (stdout === '') throw new Error(stderr)
  const report = JSON.parse(stdout) as Report
  expect(status).toBe(report.problems.length === 0 ? 0 : 1)
  return report
}

test.skipIf(skipped)(`it reads the exports of the fixture board, and counts what verify counted${note}`, () => {
  const { verify } = JSON.parse(readFixture('said.json')) as { verify: Said }
  const report = read(readFixture('export.jsonl.gz'), told.log.vkey)
  expect(report.problems).toEqual([])
  const [, signatures] = /signatures good +([\d,]+)/.exec(verify.out)!
  expect(report.signatures).toBe(Number(signatures))
  expect(report.counts).toMatchObject({ tombstone: 3, rotation: 1, undelegation: 1, log: 1 })
  const [, leaves, named] = /leaves +([\d,]+); ([\d,]+) are lines/.exec(verify.out)!
  expect([report.leaves, report.claimed]).toEqual([Number(leaves), Number(named)])
  const ledger = read(readFixture('ledger.jsonl.gz'), told.log.vkey)
  expect(ledger.problems).toEqual([])
  expect([ledger.leaves, ledger.claimed]).toEqual([Number(leaves), ledger.counts.ledger])
})

test.skipIf(skipped)(`it reads the exports of a new board on which every operation was used${note}`, async () => {
  const operator = person('the operator')
  const board = await startBoard({
    directory: boardDirectory(),
    env: { OPERATORS: operator.id, SHARDS: '2', BROADSIDE_LOOPBACK: '1' },
  })
  const client = await Client.of(board)
  const world = new World(client, operator)
  for (const operation of operations) {
    const { status, text } = await world.send(operation, await setups[operation.name]!(world))
    expect([operation.name, status, status === 200 ? '' : text]).toEqual([operation.name, 200, ''])
  }
  const { text: vkey } = await client.get('/log/vkey')
  const report = read((await client.get('/v1/export')).text, vkey)
  expect(report.problems).toEqual([])
  for (const type of ['event', 'tombstone', 'rotation']) expect(report.counts[type] ?? 0).toBeGreaterThan(0)
  expect(read((await client.get('/v1/export?stream=ledger')).text, vkey).problems).toEqual([])
  client.close()
  await board.stop()
})

test.skipIf(skipped).each([
  ['a time', /("created_at":\d+)\d/, '$10', 'its entry is not the leaf that it names'],
  ['a text', /("text":")/, '$1x', 'another text was signed'],
  ['a signature', /("signature":"....)./, '$10', 'a signature does not verify'],
  ['a leaf', /("hashes":"....)./, '$10', 'the checkpoint is of another head'],
])(`it finds %s that was changed${note}`, (_what, found, put, words) => {
  const text = readFixture('export.jsonl.gz')
  const changed = text.replace(found, put)
  expect(changed).not.toBe(text)
  expect(read(changed, told.log.vkey).problems.join('\n')).toContain(words)
})
