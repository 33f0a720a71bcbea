/** SQLite as Node brings it. Node warns that the module is experimental; this one warning is kept back, no other. */
import type { DatabaseSync } from 'node:sqlite'

export type { DatabaseSync }

export function openDatabase(file: string): DatabaseSync {
  const warn = process.emitWarning
  process.emitWarning = () => {}
  try {
    const sqlite = process.getBuiltinModule('node:sqlite')
    return new sqlite.DatabaseSync(file)
  } finally {
    process.emitWarning = warn
  }
}
