/**
 * Finds the published test vectors, which are data beside the project and not
 * part of it. Tests that need them are skipped by name when they are absent.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'

const folder = resolve(import.meta.dirname, '../../shared/data/vectors')

/** True when the vectors are not there: `describe.skipIf(vectorsAbsent)`. */
export const vectorsAbsent = !existsSync(folder)

/** For the name of a test that needs them, so that a skip says why. */
export const vectorsNote = vectorsAbsent ? ' [skipped: no vectors in ../shared/data/vectors]' : ''

if (vectorsAbsent) console.warn(`tests of published vectors skipped: ${folder} is absent`)

/** The text of one file of vectors. */
export function readVector(path: string): string {
  return readFileSync(join(folder, path), 'utf8')
}

/** All JSON files below a folder of vectors, by path from the vectors' root. */
export function listVectors(path: string): string[] {
  return readdirSync(join(folder, path), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.json'))
    .sort()
    .map((name) => join(path, name))
}

/** Reads JSON whose whole numbers may exceed 2^53: each becomes a bigint. */
export function parseWithBigInts(json: string): Record<string, unknown> {
  const quoted = json.replace(/("(?:[^"\\]|\\.)*")|(-?\d+)/g, (_, text, digits) => text ?? `"int:${digits}"`)
  return JSON.parse(quoted, (_, value) =>
    typeof value === 'string' && value.startsWith('int:') ? BigInt(value.slice(4)) : value,
  )
}
