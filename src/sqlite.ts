/** SQLite as included in Node. Suppresses Node's warning that the module is experimental, and no other warning. */
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

/** A consistent copy of a database that another process may be writing. */
export async function copyDatabase(from: string, to: string): Promise<void> {
  const { DatabaseSync, backup } = sqlite()
  const source = new DatabaseSync(from, { readOnly: true })
  try {
    await backup(source, to)
  } finally {
    source.close()
  }
}
