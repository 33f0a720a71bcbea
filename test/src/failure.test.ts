import { expect, test } from 'vitest'
import { explainFailure } from '../../src/failure.ts'
import { Damage, DiskFull, SyncFailed } from '../../storage/disk.ts'

test.each([
  [new Damage({ path: '/d/1.log', offset: 9, expected: 'a frame', found: 'none' }), /at byte 9.*Run broadside fsck/],
  [new SyncFailed('/d/1.log'), /sync of \/d\/1\.log failed.*sound disk\.$/],
  [new DiskFull('/d/1.log'), /no room to write \/d\/1\.log\. Make room/],
  [new Error("EROFS: read-only file system, open '/d/LOCK'"), /another DATA_DIR\.$/],
  [new Error('EIO: i/o error, fdatasync'), /sound disk\.$/],
  [new Error('getaddrinfo ENOTFOUND nowhere'), /Set HOST/],
  [new Error('uWebSockets.js has no binary for x: set HTTP_ENGINE=node'), /set HTTP_ENGINE=node$/],
])('%s is explained in a sentence, without a trace', (error, sentence) => {
  const explained = explainFailure({ name: error.name, message: error.message, stack: error.stack, thread: 'log' })
  expect(explained).toEqual({ problem: expect.stringMatching(sentence), thread: 'log' })
})

test('what nobody foresaw is called a fault of ours and keeps its trace', () => {
  const error = new TypeError('x is not a function')
  expect(explainFailure(error)).toEqual({
    problem: 'TypeError: x is not a function. This is a fault of Broadside: report it with this line.',
    stack: error.stack,
  })
  expect(explainFailure('a word').problem).toContain('a word')
})
