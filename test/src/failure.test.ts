import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { explainFailure } from '../../src/failure.ts'
import { EngineMissing } from '../../src/http/uws.ts'
import { openWallet } from '../../src/payments/wallet.ts'
import { Damage, DiskFull, SyncFailed } from '../../storage/disk.ts'
import { scratchDirectory } from '../support/scratch.ts'

test.each([
  [new Damage({ path: '/d/1.log', offset: 9, expected: 'a frame', found: 'none' }), /at byte 9.*Run broadside fsck/],
  [new SyncFailed('/d/1.log'), /sync of \/d\/1\.log failed.*sound disk\.$/],
  [new DiskFull('/d/1.log'), /no space to write \/d\/1\.log\. Free space/],
  [new Error("EROFS: read-only file system, open '/d/LOCK'"), /another DATA_DIR\.$/],
  [new Error('EIO: i/o error, fdatasync'), /sound disk\.$/],
  [new Error("EIO: i/o error, read '/d/1.snapshot'"), /1\.snapshot'\. The disk cannot read data.*on a sound disk\.$/],
  [new Error('EISDIR: illegal operation on a directory, read'), /move it away/],
  [new Error('getaddrinfo ENOTFOUND nowhere'), /Set HOST/],
  [new EngineMissing('uWebSockets.js has no binary for x'), /for x\. Set HTTP_ENGINE=node/],
])('%s is explained in a sentence, without a stack trace', (error, sentence) => {
  const explained = explainFailure({ name: error.name, message: error.message, stack: error.stack, thread: 'log' })
  expect(explained).toEqual({ problem: expect.stringMatching(sentence), thread: 'log' })
})

test('an unforeseen error is called a bug and keeps its stack trace', () => {
  const error = new TypeError('x is not a function')
  expect(explainFailure(error)).toEqual({
    problem: 'TypeError: x is not a function. This is a bug in Broadside: report it with this line.',
    stack: error.stack,
  })
  expect(explainFailure('a word').problem).toContain('a word')
})

test.each<[what: string, make: (file: string) => void]>([
  ['is missing', () => {}],
  ['others may read', (file) => write(file, '11'.repeat(32), 0o644)],
  ['holds no key', (file) => write(file, 'garbage')],
  ['holds a number beyond the curve', (file) => write(file, 'ff'.repeat(32))],
])('a wallet whose file %s is for the operator to fix, not a bug', async (_what, make) => {
  const file = join(scratchDirectory(), 'wallet.key')
  make(file)
  const { problem, ...rest } = explainFailure(await openWallet(file).catch((error: unknown) => error))
  expect(problem).toMatch(/^WALLET_KEY_FILE /)
  expect(rest).toEqual({})
})

function write(file: string, text: string, mode = 0o600): void {
  writeFileSync(file, text)
  chmodSync(file, mode)
}
