import { spawnSync } from 'node:child_process'
import { createPublicKey } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { encodeBase64 } from '../../storage/base64.ts'
import type { VerifierKey } from '../../storage/note.ts'
import { buildGoVerifier, missingForGoVerifier, skipNote, skipWithout } from '../peers/peers.ts'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { Client, type EventJson, type ProofJson, person } from '../support/client.ts'
import { chooseSeed, Ledger, load, randomFrom } from '../support/load.ts'
import { fetchVerifiedExport, Heads, logKeyOf, proveEvent, recordReceipt } from '../support/log-checks.ts'
import { program } from '../support/program.ts'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 })

const ada = person('ada')
const missingGo = missingForGoVerifier()

const require = createRequire(import.meta.url)
type SigstoreEntry = {
  readonly inclusionProof: {
    readonly logIndex: string
    readonly hashes: readonly Uint8Array[]
    readonly checkpoint: { readonly envelope: string }
  }
  readonly canonicalizedBody: Uint8Array
}
const { verifyMerkleInclusion } = require('@sigstore/verify/dist/tlog/merkle.js') as {
  verifyMerkleInclusion(entry: SigstoreEntry, checkpoint: unknown): void
}
const { verifyCheckpoint } = require('@sigstore/verify/dist/tlog/checkpoint.js') as {
  verifyCheckpoint(entry: SigstoreEntry, tlogs: readonly unknown[]): unknown
}

describe('the public log of a running board', () => {
  let board: Board
  let client: Client
  let key: VerifierKey
  let folder: string
  const proofs: ProofJson[] = []

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'broadside-log-'))
    board = await startBoard({ directory: boardDirectory(), env: { SEGMENT_BYTES: '65536' } })
    client = await Client.of(board)
    key = await logKeyOf(client)
  })
  afterAll(() => {
    client.close()
    rmSync(folder, { recursive: true })
  })

  test('each of 1,000 posts, 64 in flight, is provable as soon as it is acknowledged, and the head in its receipt covers it', async () => {
    const heads = new Heads(key)
    let next = 0
    const worker = async () => {
      while (next < 1_000) {
        const number = next++
        const { data, status } = await client.post(person(`p${number % 9}`), {
          room: `room-${number % 5}`,
          text: `${number}`,
        })
        expect(status).toBe(200)
        recordReceipt(heads, data.receipt!)
        const proof = await proveEvent(client, key, data.event_id!)
        expect(proof).toMatchObject({ leaf_index: data.receipt!.log_index })
        expect(proof.tree_size).toBeGreaterThanOrEqual(data.receipt!.tree_size!)
        heads.record(proof.checkpoint)
        const atReceipt = await proveEvent(client, key, data.event_id!, data.receipt!.tree_size)
        expect(atReceipt.checkpoint).toBe(data.receipt!.checkpoint)
        proofs.push(proof)
      }
    }
    await Promise.all(Array.from({ length: 64 }, worker))
    expect(new Set(proofs.map(({ leaf_index }) => leaf_index)).size).toBe(1_000)
  })

  test('a proof for a size that was never signed, or that does not cover the leaf, is not_found', async () => {
    const last = proofs.reduce((newest, each) => (each.leaf_index > newest.leaf_index ? each : newest))
    for (const size of [last.leaf_index, 10_000_000]) {
      const answer = await client.get(`/api/log/proof?message=${last.event_id}&tree_size=${size}`)
      expect(answer).toMatchObject({ status: 400, code: 'not_found' })
    }
    const unknown = await client.get(`/api/log/proof?message=${'e'.repeat(32)}`)
    expect(unknown).toMatchObject({ status: 400, code: 'not_found' })
  })

  test('npm’s @sigstore/verify finds the log’s leaves under its checkpoint', () => {
    const spki = Buffer.concat([Buffer.from('302a300506032b6570032100', 'hex'), key.publicKey])
    const logID = Buffer.alloc(4)
    logID.writeUInt32BE(key.keyId)
    const publicKey = createPublicKey({ key: spki, format: 'der', type: 'spki' })
    const trusted = [{ logID, publicKey, baseURL: `https://${key.name}` }]
    for (const proof of proofs.slice(0, 200)) {
      const hashes = proof.inclusion_path.map((hash) => Buffer.from(hash, 'hex'))
      const checkpoint = { envelope: proof.checkpoint }
      const inclusionProof = { logIndex: String(proof.leaf_index), hashes, checkpoint }
      const entry = { inclusionProof, canonicalizedBody: Buffer.from(proof.entry, 'base64') }
      verifyMerkleInclusion(entry, verifyCheckpoint(entry, trusted))
    }
  })

  test.skipIf(skipWithout(missingGo))(
    `Go’s checksum database code accepts its proofs${skipNote(missingGo)}`,
    async () => {
      const go = buildGoVerifier(folder)
      const { data } = await client.get('/api/log/checkpoint')
      const { checkpoint, vkey, tree_size: size } = data as { checkpoint: string; vkey: string; tree_size: number }
      const asked = await Promise.all(
        proofs.slice(-100).map(async ({ event_id }) => {
          const { leaf_index, entry, inclusion_path } = await proveEvent(client, key, event_id, size)
          return {
            index: leaf_index,
            entry,
            path: inclusion_path.map((hash) => encodeBase64(Buffer.from(hash, 'hex'))),
          }
        }),
      )
      expect(go.ask({ vkey, checkpoint, proofs: asked })).toEqual({
        agrees: true,
        sentence: `verified: ${key.name} at ${size}, 100 inclusion and 0 consistency proofs`,
      })
      expect(go.ask({ vkey, checkpoint, proofs: [{ ...asked[0]!, index: asked[0]!.index + 1 }] }).agrees).toBe(false)
    },
  )

  test('broadside verify accepts the whole export with the pinned key, and names a line that was changed', async () => {
    const { text } = await client.get('/v1/export')
    const { data } = await client.get('/api/log/checkpoint')
    const path = join(folder, 'export.jsonl')
    const verify = () =>
      spawnSync(process.execPath, [program, 'verify', path, '--vkey', (data as { vkey: string }).vkey], {
        encoding: 'utf8',
      })
    writeFileSync(path, text)
    const good = verify()
    expect([good.status, good.stderr]).toEqual([0, ''])
    expect(good.stdout).toMatch(/signatures good +1,000\n/)
    expect(good.stdout).toContain('root recomputed, signed by the log: verified, with the key you pinned')
    const lines = text.split('\n')
    const changed = (at: number, change: (event: Record<string, unknown>) => Record<string, unknown>) =>
      lines.with(at, JSON.stringify(change(JSON.parse(lines[at]!) as Record<string, unknown>))).join('\n')
    const forgeries = [
      changed(700, (event) => ({ ...event, text: 'forged' })),
      changed(700, (event) => ({ ...event, seq: (event.seq as number) + 1 })),
      changed(700, (event) => ({ ...event, log: { ...(event.log as object), index: 3 } })),
      changed(700, (event) => ({ ...event, author: { id: ada.id, public_key: ada.publicKey } })),
      lines
        .with(
          1_000,
          lines[1_000]!.replace(/.(?="\}$)/, (char) => (char === 'A' ? 'B' : 'A')),
        )
        .join('\n'),
    ]
    for (const forged of forgeries) {
      writeFileSync(path, forged)
      const bad = verify()
      expect(bad.status, bad.stdout + bad.stderr).not.toBe(0)
      expect(bad.stderr).toMatch(/NOT VERIFIED/)
    }
  })

  test('paging by cursor, filters and gzip give the same lines as the whole export', async () => {
    const whole = (await client.get('/v1/export')).text.trimEnd().split('\n')
    const events = whole.filter((line) => line.startsWith('{"type":"event"'))
    let paged: string[] = []
    let cursor = ''
    do {
      const { text, headers, status } = await client.get(
        `/v1/export?limit=170${cursor === '' ? '' : `&cursor=${cursor}`}`,
      )
      expect(status).toBe(200)
      paged = [...paged, ...text.trimEnd().split('\n')]
      cursor = String(headers['x-next-cursor'] ?? '')
    } while (cursor !== '')
    expect(paged).toEqual(events)
    const room = (await client.get('/v1/export?room=room-3')).text.trimEnd().split('\n')
    expect(room).toEqual(events.filter((line) => (JSON.parse(line) as EventJson).room === 'room-3'))
    expect((await client.get('/v1/export?until=1')).text).toBe('')
    const zipped = await fetch(`${board.address}/v1/export`, { headers: { 'accept-encoding': 'gzip' } })
    expect(zipped.headers.get('content-encoding')).toBe('gzip')
    expect((await zipped.text()).trimEnd().split('\n')).toEqual(whole)
  })

  test('an export taken while others post is a consistent prefix that verifies on its own', async () => {
    const ledger = new Ledger(new Heads(key), key)
    let writing = true
    let rounds = 0
    const random = randomFrom(chooseSeed('export'))
    const post = () => load({ client, ledger, random, posts: 250, inFlight: 8, rooms: ['busy', 'busier'] })
    const posting = (async () => {
      do await post()
      while (rounds < 2)
    })().finally(() => {
      writing = false
    })
    let before = 0
    while (writing) {
      const { events, report } = await fetchVerifiedExport(client, key)
      // Grants to newcomers are entries too.
      expect(report.named).toBe(events.length)
      expect(report.leaves).toBeGreaterThanOrEqual(events.length)
      expect(events.length).toBeGreaterThanOrEqual(before)
      before = events.length
      rounds += 1
    }
    await posting
    expect(rounds).toBeGreaterThan(1)
    await ledger.check(client, 0).catch((error: Error) => {
      // Postings of earlier tests are missing from the ledger.
      expect(error.message).toContain('nobody sent')
    })
  })
})
