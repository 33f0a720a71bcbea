/** A crawler that obeys robots.txt terminates, and sees the pages for people. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test, vi } from 'vitest'
import { missingProgram, skipNote, skipWithout } from '../peers/peers.ts'
import { boardDirectory, startBoard } from '../support/board-process.ts'
import { runProgram } from '../support/run-program.ts'
import { fillSampleBoard } from '../support/sample-board.ts'

vi.setConfig({ testTimeout: 900_000, hookTimeout: 900_000 })

const missing = missingProgram('wget')

describe.skipIf(skipWithout(missing))(`wget --mirror${skipNote(missing)}`, () => {
  test('ends on its own, and has read every room and post, but no stream, archive or command', async () => {
    const board = await startBoard({ directory: boardDirectory() })
    const { client, post } = await fillSampleBoard(board.address)
    const folder = mkdtempSync(join(tmpdir(), 'broadside-mirror-'))
    const { code, errors } = await runProgram(folder, 'wget', ['--mirror', '--no-verbose', `${board.address}/`])
    // 3: a file has the name of a folder. 8: a link got an error, like one to a removed text.
    expect([0, 3, 8], errors.slice(-2_000)).toContain(code)
    expect(errors).toContain('FINISHED')
    const read = [...errors.matchAll(/ URL:(\S+) /g)].map(([, url]) => url!.slice(board.address.length))
    expect(read).toEqual(expect.arrayContaining(['/robots.txt', '/', '/room/workshop', `/e/${post}`, '/docs/post']))
    expect(read.filter((path) => /^\/(?:tail|v1|c64|in|mcp|search)\b/.test(path))).toEqual([])
    client.close()
    await board.stop()
    rmSync(folder, { recursive: true })
  })
})
