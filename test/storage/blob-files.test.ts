/** Attachment files on a failing disk: a failure affects that file only. */

import { mkdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { BlobFiles } from '../../storage/blob-files.ts'
import { machineDisk } from '../../storage/machine-disk.ts'
import { scratchDirectory } from '../support/scratch.ts'

const bytes = Buffer.from('bytes')

test('a file that cannot be removed is reported, whoever asked for its removal', async () => {
  const directory = scratchDirectory()
  const told: string[] = []
  const files = new BlobFiles(machineDisk, directory, (file, problem) =>
    told.push(`${file} ${(problem as { code: string }).code}`),
  )
  const path = join(directory, 'den', 'sha')
  await files.hold('den', 'sha', bytes)
  rmSync(path)
  mkdirSync(path)
  files.release('den', 'sha', false)
  files.drop('den', 'sha')
  expect(told).toEqual([1, 2].map(() => expect.stringMatching(/den\/sha (EISDIR|EPERM)$/)))
  expect(files.held).toBe(0)
})

test('a file whose place is taken by something unreadable is not stored, and can be once that is removed', async () => {
  const directory = scratchDirectory()
  const files = new BlobFiles(machineDisk, directory, () => {})
  const path = join(directory, 'den', 'sha')
  mkdirSync(path, { recursive: true })
  await expect(files.hold('den', 'sha', bytes)).rejects.toMatchObject({ code: 'EISDIR' })
  expect(files.held).toBe(0)
  rmSync(path, { recursive: true })
  await files.hold('den', 'sha', bytes)
  files.release('den', 'sha', true)
  expect(readFileSync(path)).toEqual(bytes)
})
