/** The check of how far deliveries have come: nothing is known of it but that its file is whole, and that is looked at in a copy. */
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { fileExists } from '../../storage/disk.ts'
import { damageIn, putAside, storeFile } from '../webhooks/store.ts'
import type { Finding } from './log.ts'

/** `directory`: of the deliveries. */
export function checkDelivery(directory: string, tell: (finding: Finding) => void): void {
  const file = storeFile(directory)
  if (!fileExists(file)) return
  const copy = mkdtempSync(join(tmpdir(), 'broadside-fsck-'))
  try {
    // Opening the file itself would write to it: what a kill left in its log is put into it then.
    for (const each of [file, `${file}-wal`]) if (fileExists(each)) copyFileSync(each, join(copy, basename(each)))
    const problem = damageIn(copy)
    if (problem === undefined) return
    const what = `${problem}: without it every webhook restarts from where it was created`
    tell({ kind: 'derived', where: file, what, remake: () => putAside(directory) })
  } finally {
    rmSync(copy, { recursive: true, force: true })
  }
}
