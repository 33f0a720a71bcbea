/**
 * A running board with more than 70,000 log entries, followed and verified by third-party programs; and which tests check each
 * invariant of the log (the tidy test finds each title; placeholders are written %s).
 *
 * I1 roots equal a recomputation from the bundles
 *   - e2e/tiles.test.ts "the tiles and bundles of the checkpoint give its root…"
 *   - slow/mirror.test.ts "a log that serves other entries than it signed is found out…"
 *   - slow/big-log.test.ts "a mirror of it is verified…"
 * I2 sizes never shrink, one size has one body
 *   - slow/heads.test.ts "over restarts and kills heads never shrink…"
 *   - slow/kill-under-load.test.ts "with %s, after each kill…"
 * I3 no two bodies for one size, over kills and with two processes
 *   - slow/heads.test.ts "over restarts and kills…"
 *   - slow/log-faults.test.ts "%s with %s: every published head is of the one log…"
 *   - storage/lock.test.ts "a second process is refused…"
 * I4 consistency between all heads
 *   - slow/log-faults.test.ts "%s with %s: every published head…"
 *   - e2e/tiles.test.ts "any two sizes are proved consistent with each other"
 *   - storage/merkle.test.ts "all 8,515 consistency proofs…"
 *   - slow/big-log.test.ts "Go's note and tlog…"
 * I5 acknowledged entries survive kills and power cuts
 *   - slow/kill-under-load.test.ts "with %s, after each kill…"
 *   - slow/power-cut.test.ts "at any moment…"
 *   - slow/syscalls.test.ts "a board that is killed at one of the first 16 syncs…"
 * I6 the sync returns before the answer
 *   - slow/power-cut.test.ts "at any moment…"
 *   - slow/syscalls.test.ts "if the third sync of %s fails (EIO)…"
 * I7 one leaf for each event, and the same one for a retry
 *   - e2e/log.test.ts "each of 1,000 posts…"
 *   - slow/retries.test.ts "the same bytes again give the same outcome…"
 *   - slow/log-rotation.test.ts "the same bytes again…"
 * I8 private rooms leave no trace
 *   - e2e/private-rooms.test.ts "nothing of it is in an answer…"
 *   - e2e/private-rooms.test.ts "a private id or room is answered like an unknown one…"
 *   - slow/busy-afternoon.test.ts "after a busy afternoon…"
 * I9 redacted texts and nonces are nowhere, their proofs stay valid
 *   - slow/compaction.test.ts "a redacted text and its nonce leave every file…"
 *   - src/cli/verify.test.ts "a good export verifies…"
 * I10 tiles never change, and nothing is served beyond the size
 *   - e2e/tiles.test.ts "the partial tiles and bundles of every size…"
 *   - e2e/tiles.test.ts "the tiles and bundles of the checkpoint…"
 *   - slow/log-rotation.test.ts "every tile, bundle and proof of the closed log…"
 * I11 upper tiles contain the roots of lower ones, bundles hash to tiles
 *   - e2e/tiles.test.ts "the tiles and bundles of the checkpoint…"
 *   - slow/big-log.test.ts "Go's tile reader…"
 * I12 Go and npm agree
 *   - e2e/log.test.ts "npm’s @sigstore/verify finds…"
 *   - storage/go-verifier.test.ts "agrees with every checkpoint and proof…"
 *   - slow/big-log.test.ts "Go's note and tlog…"
 *   - slow/big-log.test.ts "Go's tile reader…"
 * I13 any change is refused
 *   - storage/merkle.test.ts "with any bit of any hash flipped are false"
 *   - storage/note.test.ts "with any byte changed, lost or added is refused"
 *   - storage/proof-file.test.ts "with any byte changed…"
 *   - src/cli/verify.test.ts "whatever single byte of an export is changed…"
 *   - storage/go-verifier.test.ts "refuses what was tampered with"
 * I14 torn tails are cut, damage is reported
 *   - storage/recovery.test.ts "cut at any byte, the last segment opens…"
 *   - storage/recovery.test.ts "any changed byte before the last batch…"
 *   - slow/damaged-files.test.ts "an older segment of %s with one changed byte…"
 *   - slow/fsck.test.ts "beside damage nothing is repaired…"
 * I15 fault table over 65,536 and segment rolls
 *   - slow/log-faults.test.ts "%s with %s: every published head…"
 *   - slow/syscalls.test.ts "a board that is killed while it seals segments…"
 * I16 a failed sync ends the process
 *   - slow/syscalls.test.ts "if the third sync of %s fails (EIO)…"
 *   - slow/log-faults.test.ts "%s with %s: every published head…"
 * I17 one process at a time
 *   - storage/lock.test.ts "a second process is refused…"
 *   - storage/lock.test.ts "after kill -9 the directory is free"
 * I18 an old copy does not sign
 *   - slow/mark.test.ts "an old copy of the data directory does not sign…"
 *   - slow/witnesses.test.ts "an old copy does not sign…"
 *   - slow/log-rotation.test.ts "a running board is not rotated, and an old copy…"
 * I19 clocks set back
 *   - slow/clock-jumps.test.ts "%s while it runs: order and stamps hold…"
 *   - slow/clock-jumps.test.ts "restarted after %s at another time…"
 * I20 all readers see one head, few are offered to witnesses
 *   - slow/witnesses.test.ts "each new head goes through the witness…"
 *   - src/log/witness.test.ts "offers only the newest of the heads…"
 * I21 failing witnesses cost nothing
 *   - src/log/witness.test.ts "is not held up by witnesses…"
 *   - src/log/witness.test.ts "reports the outcome of each answer"
 * I22 roots and paths follow the definition
 *   - storage/merkle.test.ts "are those of the recursive definition, and verify"
 *   - storage/merkle.test.ts "all 8,515 inclusion proofs…"
 *   - storage/tree.test.ts "is the same however the leaves were divided…"
 * I23 derived files are rebuilt
 *   - actors/log-tree.test.ts "a tree file is rebuilt at start if it is missing…"
 *   - slow/damaged-files.test.ts "a start rebuilds %s…"
 *   - slow/damaged-files.test.ts "changed or truncated indexes…"
 *   - slow/fsck.test.ts "a derived file that differs…"
 * I24 a damaged node never becomes a wrong proof
 *   - slow/damaged-files.test.ts "nodes.bin %s while the board runs…"
 *   - storage/tree.test.ts "of a file with a changed byte makes a proof that the verifier refuses"
 * I25 a million entries: start, proofs: `npm run bench -- log`
 */
import { rmSync } from 'node:fs'
import { createServer as createHttpServer } from 'node:http'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { main } from '../../src/cli/main.ts'
import { encodeBase64 } from '../../storage/base64.ts'
import { openCheckpoint } from '../../storage/checkpoint.ts'
import type { VerifierKey } from '../../storage/note.ts'
import { buildGoVerifier, missingForGoVerifier, skipNote, skipWithout } from '../peers/peers.ts'
import { capturedTerminal } from '../src/cli/captured-terminal.ts'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { Client, type ProofJson } from '../support/client.ts'
import { logKeyOf, proveEvent } from '../support/log-checks.ts'
import { idOf, integrate, writePosts } from '../support/posts-on-disk.ts'

vi.setConfig({ testTimeout: 900_000, hookTimeout: 900_000 })

const missingGo = missingForGoVerifier()
const posts = 70_500
/** On both sides of tile boundaries on each level, and of the partial tiles at the end. */
const places = [0, 1, 255, 256, 4_095, 4_096, 65_535, 65_536, 65_537, 70_143, 70_144, posts - 1]
const sizesBefore = [4_096, 65_536, 69_632]
let board: Board
let client: Client
let key: VerifierKey
let serviceId: string
let directory: string

beforeAll(async () => {
  directory = boardDirectory()
  const { port, free } = await keptPort()
  serviceId = writePosts({ directory, posts, publicHost: `127.0.0.1:${port}`, textBytes: 40 })
  integrate({ directory, posts })
  await free()
  board = await startBoard({ directory, port })
  client = await Client.of(board)
  key = await logKeyOf(client)
})
afterAll(() => client.close())

test('a mirror of it is verified, entry by entry, and on its own', async () => {
  const mirror = join(directory, 'mirror')
  const terminal = capturedTerminal()
  expect(await main(['mirror', board.address, mirror], terminal), terminal.said.err).toBe(0)
  expect(await main(['verify', mirror], terminal)).toBe(0)
  rmSync(mirror, { recursive: true })
})

test.skipIf(skipWithout(missingGo))(
  `Go's note and tlog accept inclusion and consistency proofs over the whole log${skipNote(missingGo)}`,
  async () => {
    const go = buildGoVerifier(directory)
    const { data } = await client.get('/api/log/checkpoint')
    const {
      checkpoint,
      vkey,
      tree_size: size,
    } = data as Required<Pick<ProofJson, 'checkpoint' | 'tree_size'>> & { vkey: string }
    expect(size).toBeGreaterThanOrEqual(posts)
    const proofs = await Promise.all(
      places.map(async (n) => {
        const answer = await client.get(
          `/api/log/proof?message=${idOf(serviceId, n, { textBytes: 40 })}&tree_size=${size}`,
        )
        const { leaf_index, entry, inclusion_path } = answer.data as ProofJson
        expect(leaf_index).toBe(n)
        return { index: leaf_index, entry, path: inclusion_path.map(base64Of) }
      }),
    )
    const signed = await Promise.all(
      sizesBefore.map(async (from) => {
        const { root_hash } = await proveEvent(client, key, idOf(serviceId, 77, { textBytes: 40 }), from)
        const answer = await client.get(`/api/log/consistency?from=${from}&to=${size}`)
        const { consistency_path } = answer.data as unknown as { consistency_path: string[] }
        return { from, from_root: base64Of(root_hash), path: consistency_path.map(base64Of) }
      }),
    )
    const to_root = checkpoint.split('\n')[2]!
    const consistency = signed.map((each) => ({ ...each, to: size, to_root }))
    expect(go.ask({ vkey, checkpoint, proofs, consistency })).toEqual({
      agrees: true,
      sentence: `verified: ${key.name} at ${size}, ${places.length} inclusion and 3 consistency proofs`,
    })
  },
)

test.skipIf(skipWithout(missingGo))(
  `Go's tile reader proves entries and older heads from the tiles alone, and a changed tile proves nothing${skipNote(missingGo)}`,
  async () => {
    const go = buildGoVerifier(directory)
    const url = `${board.address}${key.name.slice(key.name.indexOf('/'))}`
    const checkpoint = await (await fetch(`${url}/checkpoint`)).text()
    const vkey = (await (await fetch(`${url}/vkey`)).text()).trim()
    const heads = await Promise.all(
      sizesBefore.map(async (size) => {
        const { root_hash } = await proveEvent(client, key, idOf(serviceId, 77, { textBytes: 40 }), size)
        return { size, root: base64Of(root_hash) }
      }),
    )
    const tiles = { url, entries: places, heads }
    const size = Number(checkpoint.split('\n')[1])
    const { agrees, sentence } = await go.askMeanwhile({ vkey, checkpoint, tiles })
    expect([agrees, sentence]).toEqual([
      true,
      expect.stringMatching(
        `^verified: ${key.name} at ${size}, ${places.length} entries and ${heads.length} heads by [1-9][0-9]* tiles$`,
      ),
    ])
    const other = { ...tiles, heads: [{ size: 65_536, root: heads[0]!.root }] }
    expect((await go.askMeanwhile({ vkey, checkpoint, tiles: other })).agrees).toBe(false)
    const between = await changingProxy(url, '/tile/0/000')
    const changed = await go.askMeanwhile({ vkey, checkpoint, tiles: { ...tiles, url: between.url } })
    between.close()
    expect([changed.agrees, changed.sentence]).toEqual([false, expect.stringContaining('by tiles: ')])
  },
)

test('proofs against earlier signed heads are of the same log', async () => {
  for (const size of sizesBefore) {
    const proof = await proveEvent(client, key, idOf(serviceId, 77, { textBytes: 40 }), size)
    expect(openCheckpoint(proof.checkpoint, key).ok).toBe(true)
  }
})

const base64Of = (hex: string): string => encodeBase64(Buffer.from(hex, 'hex'))

/** Forwards requests to `url`, with one bit of the answer for `path` changed. */
async function changingProxy(url: string, path: string): Promise<{ url: string; close: () => void }> {
  const server = createHttpServer(async (request, answer) => {
    const bytes = Buffer.from(await (await fetch(`${url}${request.url}`)).arrayBuffer())
    if (request.url === path) bytes[7]! ^= 1
    answer.end(bytes)
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}`, close: () => server.close() }
}

/** A port that nobody else takes until it is freed: the name of the log contains it. */
function keptPort(): Promise<{ port: number; free: () => Promise<void> }> {
  return new Promise((done) => {
    const server = createServer()
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as AddressInfo
      done({ port, free: () => new Promise((closed) => server.close(() => closed())) })
    })
  })
}
