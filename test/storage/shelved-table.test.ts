/** A table on disk finds exactly what was put into it, and an altered one is rejected. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { machineDisk } from '../../storage/machine-disk.ts'
import { ShelvedTable, shelvedBytes } from '../../storage/shelved-table.ts'
import { scratchDirectory } from '../support/scratch.ts'

const cells = 256

/** Entries in a table as memory has it: each in the first empty cell from its remainder on. */
function cellsOf(entries: readonly (readonly [fingerprint: number, value: number])[]) {
  const fingerprints = new Float64Array(cells)
  const values = new Uint32Array(cells)
  for (const [fingerprint, value] of entries) {
    let cell = fingerprint % cells
    while (values[cell] !== 0) cell = (cell + 1) % cells
    fingerprints[cell] = fingerprint
    values[cell] = value
  }
  return { fingerprints, values }
}

function written(entries: readonly (readonly [number, number])[]): string {
  const path = join(scratchDirectory(), 'table')
  writeFileSync(path, shelvedBytes(cellsOf(entries)))
  return path
}

function valuesOf(table: ShelvedTable, fingerprint: number): number[] {
  const found: number[] = []
  table.find(fingerprint, (value) => {
    found.push(value)
    return false
  })
  return found.sort((one, other) => one - other)
}

test('every entry is found, also several with one fingerprint and those that wrap around the end', () => {
  // Few remainders: long runs of cells, many of them around the end.
  const fingerprint = fc
    .tuple(fc.nat({ max: 2 ** 40 }), fc.constantFrom(0, 7, 240, 255))
    .map(([high, low]) => high * cells + low)
  fc.assert(
    fc.property(fc.uniqueArray(fingerprint, { maxLength: 160 }), fingerprint, (all, other) => {
      const entries = all.map((each, n): [number, number] => [n % 5 === 4 ? all[n - 1]! : each, n + 1])
      const table = ShelvedTable.open(machineDisk, written(entries))!
      for (const sought of [...all, other])
        expect(valuesOf(table, sought)).toEqual(entries.filter(([each]) => each === sought).map(([, value]) => value))
      for (const [each, value] of entries) expect(table.find(each, (found) => found === value)).toBe(true)
      table.close()
    }),
    { numRuns: 40 },
  )
})

test('a file that is missing, cut or changed in any byte is rejected', () => {
  const path = written([
    [5, 1],
    [2 ** 51 + 3, 2],
  ])
  const bytes = readFileSync(path)
  expect(ShelvedTable.open(machineDisk, `${path}.none`)).toBeUndefined()
  for (let at = 0; at < bytes.length; at += 97) {
    writeFileSync(path, bytes.subarray(0, at))
    expect(ShelvedTable.open(machineDisk, path)).toBeUndefined()
    const changed = Buffer.from(bytes)
    changed[at]! ^= 1
    writeFileSync(path, changed)
    expect([at, ShelvedTable.open(machineDisk, path)]).toEqual([at, undefined])
  }
  writeFileSync(path, bytes)
  expect(valuesOf(ShelvedTable.open(machineDisk, path)!, 2 ** 51 + 3)).toEqual([2])
})
