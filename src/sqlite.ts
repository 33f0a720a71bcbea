/** SQLite as Node brings it. Node warns that the module is experimental; this one warning is kept back, no other. */
import type { DatabaseSync } from 'node:sqlite'

export type { DatabaseSync }

function sqlite(): typeof import('node:sqlite') {
  const warn = process.emitWarning
  process.emitWarning = () => {}
  try {
    return process.getBuiltinModule('node:sqlite')
  } finally {
    process.emitWarning = warn
  }
}

export function openDatabase(file: string): DatabaseSync {
  return new (sqlite().DatabaseSync)(file)
}

/** A consistent copy of a database, which another process may be writing. */
export async function copyDatabase(from: string, to: string): Promise<void> {
  const { DatabaseSync, backup } = sqlite()
  const source = new DatabaseSync(from, { readOnly: true })
  try {
    await backup(source, to)
  } finally {
    source.close()
  }
}
