/** The stored history of deliveries: the newest hundred, each once, in its current state, over any number of writes. */

import { mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { checkDelivery } from '../../../src/fsck/fsck.ts'
import type { Finding } from '../../../src/fsck/log.ts'
import { type DeliveryRow, DeliveryStore, deliveriesKept, storeFile } from '../../../src/webhooks/store.ts'
import { machineDisk } from '../../../storage/machine-disk.ts'
import { scratchDirectory } from '../../support/scratch.ts'

const directory = mkdtempSync(join(tmpdir(), 'broadside-deliveries-'))
afterAll(() => rmSync(directory, { recursive: true, force: true }))

const rowOf = (event: number, more: Partial<DeliveryRow> = {}): DeliveryRow => ({
  ...{ event: `evt_${event}`, kind: 'room.post', source: 0, position: event, subject: 'aa', item: 0, work: '', at: 1 },
  ...{ state: 'delivered', attempts: 1, status: 200, error: '', attemptedAt: 2 },
  ...more,
})

test('the newest are listed, a retried event once and in place, and nothing of a deleted webhook', () => {
  let store = DeliveryStore.open(directory)
  const write = (hook: string, rows: readonly DeliveryRow[], removed: readonly string[] = []) =>
    store.commit({ tails: [1], places: new Map(), removed, deliveries: rows.map((row) => ({ hook, row })) })
  for (let n = 0; n < 250; n++) write(n % 2 === 0 ? 'even' : 'odd', [rowOf(n)])
  write(
    'many',
    Array.from({ length: 300 }, (_, n) => rowOf(n)),
  )
  const events = (hook: string) => store.deliveries(hook, Number.MAX_SAFE_INTEGER, 1_000).map(({ event }) => event)
  expect(events('even')).toEqual(Array.from({ length: deliveriesKept }, (_, n) => `evt_${248 - 2 * n}`))
  expect(events('many')).toEqual(Array.from({ length: deliveriesKept }, (_, n) => `evt_${299 - n}`))
  const last = rowOf(1_000, { state: 'waiting', status: 503 })
  write('even', [last])
  store.close()
  store = DeliveryStore.open(directory)
  write('even', [{ ...last, attempts: 2 }, { ...last, attempts: 3, state: 'delivered', status: 200 }, rowOf(1_001)])
  write('even', [rowOf(248, { attempts: 2, status: 410 })])
  expect(events('even').slice(0, 4)).toEqual(['evt_1001', 'evt_1000', 'evt_248', 'evt_246'])
  expect(store.delivery('even', 'evt_1000')).toMatchObject({ attempts: 3, state: 'delivered', status: 200 })
  expect(store.delivery('even', 'evt_248')).toMatchObject({ attempts: 2, status: 410 })
  const [, second] = store.deliveries('even', Number.MAX_SAFE_INTEGER, 2)
  expect(store.deliveries('even', second!.n, 1)[0]!.event).toBe('evt_248')
  write('odd', [], ['even'])
  expect([events('even'), events('odd').length]).toEqual([[], deliveriesKept])
  store.close()
})

test.each<[what: string, harm: (file: string) => void]>([
  ['is no database', (file) => writeFileSync(file, 'x'.repeat(5_000))],
  ['is cut', (file) => truncateSync(file, 4_096)],
  ['holds a place that none can be', (file) => swap(file, '[41]', '[41}')],
])('a file that %s is reported, set aside, and deliveries begin anew', (_what, harm) => {
  const there = scratchDirectory()
  const file = storeFile(there)
  const store = DeliveryStore.open(there)
  store.commit({ tails: [41], places: new Map(), removed: [], deliveries: [{ hook: 'a', row: rowOf(1) }] })
  store.close()
  const findings: Finding[] = []
  const told: string[] = []
  checkDelivery(machineDisk, there, (finding) => findings.push(finding))
  DeliveryStore.open(there, (...words) => told.push(...words)).close()
  expect([findings, told]).toEqual([[], []])
  harm(file)
  const harmed = readFileSync(file)
  checkDelivery(machineDisk, there, (finding) => findings.push(finding))
  expect(findings).toMatchObject([{ kind: 'derived', where: file }])
  expect(readFileSync(file)).toEqual(harmed)
  const again = DeliveryStore.open(there, (...words) => told.push(...words))
  expect(told[0]).toBe(file)
  expect([again.tails(), readFileSync(`${file}.damaged`)]).toEqual([undefined, harmed])
  again.commit({ tails: [7], places: new Map(), removed: [], deliveries: [] })
  expect(again.tails()).toEqual([7])
  again.close()
})

function swap(file: string, from: string, to: string): void {
  const bytes = readFileSync(file)
  bytes.write(to, bytes.indexOf(from))
  writeFileSync(file, bytes)
}
