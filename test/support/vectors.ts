/** The published test vectors. The data is stored beside the project and is not part of it. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { realData } from './real-data.ts'

export const vectors = realData('vectors')

/** The text of one file of vectors. */
export function readVector(path: string): string {
  return readFileSync(join(vectors.path, path), 'utf8')
}

/** All JSON files below a folder of vectors, by path from the vectors' root. */
export function listVectors(path: string): string[] {
  return readdirSync(join(vectors.path, path), { recursive: true, encoding: 'utf8' })
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
