/**
 * Finds the real data that is stored beside the project and not part of it. Tests that need some of it are skipped by name if it is absent.
 */
import { existsSync } from 'node:fs'
import { resolve } from 'node:path'

export type RealData = {
  readonly path: string
  /** For `describe.skipIf`. Code inside a skipped `describe` runs all the same, except hooks and tests. */
  readonly isAbsent: boolean
  /** For the title of what needs it, so that a skip says why. */
  readonly note: string
}

/** A folder or a file of the data, by its path from their root. */
export function realData(name: string): RealData {
  const path = resolve(import.meta.dirname, '../../../shared/data', name)
  const isAbsent = !existsSync(path)
  if (isAbsent) console.warn(`tests of real data skipped: ${path} is absent`)
  return { path, isAbsent, note: isAbsent ? ` [skipped: no ../shared/data/${name}]` : '' }
}
