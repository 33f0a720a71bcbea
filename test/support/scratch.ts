/** Directories of tests: real ones, removed after the test that requested them. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'

export function scratchDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), 'broadside-'))
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }))
  return directory
}

/** Changes one byte of a file. */
export function flipByte(path: string, offset: number): void {
  const bytes = readFileSync(path)
  bytes[offset] = bytes[offset]! ^ 0x5a
  writeFileSync(path, bytes)
}
