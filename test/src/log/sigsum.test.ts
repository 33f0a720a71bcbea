import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { systemClock } from '../../../src/clock.ts'
import { WitnessRound } from '../../../src/log/witness/round.ts'
import { formatCheckpoint, openCheckpoint } from '../../../storage/checkpoint.ts'
import { consistencyPathOf, leafHash, type NodeReader, nodeHash, rootOf } from '../../../storage/merkle.ts'
import { formatVkey, KEY_TYPE, parseNote, parseVkey, signNote, type VerifierKey } from '../../../storage/note.ts'
import { createNoteKey } from '../../../storage/note-signer.ts'
import { findProgram, missingProgram, skipNote, skipWithout } from '../../peers/peers.ts'
import { patience } from '../../support/patience.ts'
import { scratchDirectory } from '../../support/scratch.ts'

vi.setConfig({ testTimeout: 300_000 })

const missing = missingProgram('sigsum-witness')

/** This witness knows logs by only one form of origin: the hash of their key. */
const seed = Buffer.alloc(32, 0x44)
const { publicKey } = createNoteKey('any', seed)
const logKey = createNoteKey(`sigsum.org/v1/tree/${createHash('sha256').update(publicKey).digest('hex')}`, seed)

const nodes: NodeReader = (level, index) =>
  level === 0 ? leafHash(Buffer.of(index)) : nodeHash(nodes(level - 1, 2 * index), nodes(level - 1, 2 * index + 1))
const headOf = (size: number) =>
  signNote(formatCheckpoint({ origin: logKey.signer.name, size, root: rootOf(nodes, size) }), logKey.signer)

const keyOf = (vkey: string): VerifierKey => {
  const parsed = parseVkey(vkey)
  if (!parsed.ok) throw new Error(parsed.problem)
  return parsed.value
}

describe.skipIf(skipWithout(missing))(`Debian’s sigsum-witness${skipNote(missing)}`, () => {
  test('signs our heads as they grow, and its signatures verify', async () => {
    const directory = scratchDirectory()
    const program = findProgram('sigsum-key')!
    // Only the second reads: the first may have exited before anything is written to it.
    execFileSync(program, ['generate', '-o', join(directory, 'w.key')])
    execFileSync(program, ['from-vkey', '-o', join(directory, 'log.pub')], { input: logKey.vkey })
    const port = await freePort()
    const witness = spawn(
      findProgram('sigsum-witness')!,
      [
        '-k',
        join(directory, 'w.key'),
        '--log-key',
        join(directory, 'log.pub'),
        '--state-file',
        join(directory, 'state'),
        `127.0.0.1:${port}`,
      ],
      // Without it this build answers 404 to everything.
      { env: { ...process.env, GODEBUG: 'httpmuxgo121=0' }, stdio: 'ignore' },
    )
    onTestFinished(() => ended(witness))
    const url = `http://127.0.0.1:${port}`
    await vi.waitFor(() => fetch(url), patience)
    const line = await firstLine(url)
    // The last 32 bytes of an OpenSSH public key are the key itself.
    const raw = Buffer.from(readFileSync(join(directory, 'w.key.pub'), 'utf8').split(' ')[1]!, 'base64').subarray(-32)
    const key = keyOf(formatVkey({ name: line.name, type: KEY_TYPE.cosignature, publicKey: raw }))
    const rollbacks: string[] = []
    const newRound = () =>
      new WitnessRound({
        witnesses: [{ name: 'sigsum', key, url }],
        consistency: (from, to) => Promise.resolve(consistencyPathOf(nodes, from, to)),
        onRollback: (problem) => rollbacks.push(problem),
        kept: '',
        onPublished: () => {},
        now: () => 1_790_000_000,
        timers: systemClock,
        timeoutMs: patience.timeout,
        paceMs: 1,
      })
    const round = newRound()
    for (const size of [3, 8, 21]) {
      await round.first(headOf(size))
      const opened = openCheckpoint(round.published, keyOf(logKey.vkey), [key])
      expect(opened.ok && opened.value.signedBy.map(({ name }) => name)).toEqual([logKey.signer.name, line.name])
    }
    // As after a start from an old copy.
    await newRound().first(headOf(8))
    expect(rollbacks).toEqual([expect.stringContaining('has signed a head of 21 entries of this log, which has 8')])
  })
})

/** The first line that the witness signs contains its name. */
async function firstLine(url: string): Promise<{ name: string }> {
  const answer = await fetch(`${url}/add-checkpoint`, { method: 'POST', body: `old 0\n\n${headOf(3)}` })
  const note = parseNote(`x\n\n${await answer.text()}`)
  if (!note.ok) throw new Error(`${answer.status} ${note.problem}`)
  return note.value.lines[0]!
}

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const probe = createServer().listen(0, '127.0.0.1', () => {
      const address = probe.address()
      probe.close(() => resolve(typeof address === 'object' && address !== null ? address.port : 0))
    })
  })
}

function ended(child: ChildProcess): Promise<void> {
  return new Promise((resolve) => {
    child.once('exit', () => resolve())
    child.kill('SIGKILL')
  })
}
