/**
 * `broadside demo`: goes through the main use case once, on a fresh board with real input.
 *
 * Starts a board, imports a corpus while a reader follows one of its rooms, posts a signed message, fetches and checks its proof, exports,
 * verifies the export with the key pinned at the start, and reports what it took.
 */

import { type ChildProcess, spawn } from 'node:child_process'
import { hash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, rm, stat, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseVkey, type VerifierKey } from '../../storage/note.ts'
import { packageDirectory, programFile } from '../program.ts'
import { BoardClient } from './client.ts'
import { type Command, CommandFailed, exitCodes, print, type Terminal, Unverified } from './command-line.ts'
import { parseCorpusLine } from './corpus.ts'
import { download } from './export.ts'
import { follow } from './follow.ts'
import { printReport } from './import.ts'
import { jsonLinesSource } from './import-json-lines.ts'
import { ImportState } from './import-state.ts'
import { Importer, type ImportReport } from './importer.ts'
import { openLines } from './lines.ts'
import { type Signer, signCommand, signerFromSeed } from './sign.ts'
import { bytesText, grouped, inertText } from './terminal.ts'
import { checkExport, threadsFor } from './verify.ts'
import { type ProvenFacts, verifyProofJson } from './verify-proof.ts'

const corpusDefault = '../shared/data/board/board-corpus.jsonl.gz'
const generatedMessages = 3000
const inFlight = 128
const portDefault = 8787
/** The last posts reach a reader within milliseconds; posts still missing after this are lost. */
const tailSecondsMax = 120

export const demoCommand: Command = {
  name: 'demo',
  summary: 'Runs a new board through its main tasks on real input and reports the measurements. Stop it with Ctrl-C.',
  usage: 'demo [CORPUS.jsonl[.gz]] [options]',
  optionHelp: [
    ['--once', 'end after the report instead of leaving the board running'],
    ['--data DIR', 'a new directory for the board (default: a temporary one, removed at the end)'],
    ['--port N', `port of the board (default: ${portDefault} if it is free, else any)`],
  ],
  example: 'broadside demo --once',
  options: { once: { type: 'boolean' }, data: { type: 'string' }, port: { type: 'string' } },
  positionals: { min: 0, max: 1 },
  async run(args, terminal) {
    const scratch = await mkdtemp(join(tmpdir(), 'broadside-demo-'))
    const data = args.text('data')
    const port = args.integer('port', { fallback: (await isFree(portDefault)) ? portDefault : 0, min: 0, max: 65_535 })
    let board: BoardProcess | undefined
    const interrupted = new Promise<void>((done) => {
      process.once('SIGINT', () => done())
      process.once('SIGTERM', () => done())
    })
    try {
      const corpus = await chooseCorpus(args.positionals[0], scratch, terminal)
      const dataDirectory = data === undefined ? join(scratch, 'data') : resolve(data)
      if (existsSync(dataDirectory))
        throw new CommandFailed(
          `${dataDirectory} exists. The demo needs a new directory: name one that does not exist.`,
        )
      await mkdir(dataDirectory, { recursive: true })
      board = await startBoard({ dataDirectory, port })
      print(
        terminal,
        { address: board.address, data: dataDirectory, corpus },
        `Board      ${board.address}, data in ${dataDirectory}\nCorpus     ${corpus}\n`,
      )
      const job = new Demo({ url: board.address, corpus, scratch, terminal }).run()
      const outcome = await Promise.race([job, interrupted.then(() => 'interrupted' as const)])
      if (outcome === 'interrupted') {
        job.catch(() => undefined)
        return exitCodes.failed
      }
      if (!args.flag('once')) {
        terminal.out(`\nThe board keeps running at ${board.address} until Ctrl-C.\n`)
        await Promise.race([interrupted, board.ended])
      }
      return exitCodes.ok
    } finally {
      await board?.stop()
      await rm(scratch, { recursive: true, force: true })
    }
  },
}

async function chooseCorpus(given: string | undefined, scratch: string, terminal: Terminal): Promise<string> {
  if (given !== undefined) return given
  const shared = join(packageDirectory, corpusDefault)
  if (existsSync(shared)) return shared
  const path = join(scratch, 'corpus.jsonl')
  await writeFile(path, demoCorpus(generatedMessages))
  terminal.out(`No corpus is given, so ${grouped(generatedMessages)} messages are generated.\n`)
  return path
}

function isFree(port: number): Promise<boolean> {
  return new Promise((done) => {
    const probe = createServer()
    probe.once('error', () => done(false))
    probe.listen(port, '127.0.0.1', () => probe.close(() => done(true)))
  })
}

type DemoOptions = {
  readonly url: string
  readonly corpus: string
  readonly scratch: string
  readonly terminal: Terminal
}

type Posted = { readonly eventId: string; readonly ms: number }

class Demo {
  readonly #options: DemoOptions
  readonly #terminal: Terminal
  readonly #client: BoardClient
  readonly #signer: Signer = signerFromSeed(randomBytes(32))
  #serviceId = ''

  constructor(options: DemoOptions) {
    // The steps print text; the facts of all of them are printed at the end.
    const { json: _, ...steps } = options.terminal
    this.#options = { ...options, terminal: steps }
    this.#terminal = options.terminal
    this.#client = new BoardClient({ url: options.url, connections: inFlight })
  }

  async run(): Promise<void> {
    const { terminal } = this.#options
    try {
      const { serviceId, log } = await this.#client.capabilities()
      this.#serviceId = serviceId
      const vkey = parseVkey(log.vkey)
      if (!vkey.ok) throw new Unverified(`The board's log key cannot be read: ${vkey.problem}.`)
      const room = await roomOfFirst(this.#options.corpus)
      const first = await this.#post(room, 'The demo begins: this post is where its reader starts to follow.')
      const reader = new RoomReader({ client: this.#client, room, since: first.eventId })
      const report = await this.#import()
      const followed = await reader.finish(await this.#seqAfter(room, first.eventId))
      const last = await this.#post(room, 'The demo ends: this post is proved and exported.')
      const proof = await this.#prove(last.eventId, vkey.value)
      const exported = await this.#export(vkey.value)
      terminal.out('\n')
      printReport(report, terminal, { listAll: false, entriesName: 'lines', takesSources: true })
      const whole = { report, followed, room, last, proof, exported }
      print(this.#terminal, factsOf(whole), `\n${summary(whole)}`)
    } finally {
      this.#client.close()
    }
  }

  async #post(room: string, text: string): Promise<Posted> {
    const { clock } = this.#options.terminal
    const fields = { operation: 'post', room, text }
    const signed = signCommand(fields, {
      signer: this.#signer,
      serviceId: this.#serviceId,
      nowSeconds: clock.wallSeconds(),
    })
    const startedMs = clock.monotonicMs()
    await this.#client.command(signed.body)
    return { eventId: signed.eventId, ms: clock.monotonicMs() - startedMs }
  }

  async #import(): Promise<ImportReport> {
    const { corpus, scratch, terminal } = this.#options
    const seed = randomBytes(32)
    const state = ImportState.open(join(scratch, 'import.state'), { serviceId: this.#serviceId, seed })
    const importer = new Importer({
      client: this.#client,
      sender: this.#client,
      serviceId: this.#serviceId,
      source: jsonLinesSource(openLines(corpus)),
      takesSources: true,
      state,
      seed,
      inFlightMax: inFlight,
      terminal,
    })
    return await importer.run()
  }

  /** Number of posts in the room after the event: the newest seq minus the event's. */
  async #seqAfter(room: string, eventId: string): Promise<number> {
    const [newest, start] = await Promise.all([
      this.#client.read(`/api/events?room=${room}&limit=1`),
      this.#client.read(`/api/events/${eventId}`),
    ])
    const newestSeq = Object((newest.events as unknown[])[0]) as { seq?: number }
    const startEvent = Object(start.event ?? start) as { seq?: number }
    return Number(newestSeq.seq) - Number(startEvent.seq)
  }

  async #prove(eventId: string, key: VerifierKey): Promise<ProvenFacts> {
    const proof = await this.#client.read(`/api/log/proof?message=${eventId}`)
    return verifyProofJson(proof, key)
  }

  async #export(key: VerifierKey): Promise<Exported> {
    const { scratch, terminal } = this.#options
    const path = join(scratch, 'export.jsonl')
    const startedMs = terminal.clock.monotonicMs()
    await download({ client: this.#client, query: '', path, out: terminal.outStream })
    const seconds = (terminal.clock.monotonicMs() - startedMs) / 1000
    const { size } = await stat(path)
    terminal.out('\nExport verified against the key that the board named at the start:\n')
    const source = openLines(path)
    const report = await checkExport(source, {
      key: { key, isPinned: true, from: 'the start of the demo' },
      threads: threadsFor(source),
      terminal,
    })
    if (report.first !== undefined)
      throw new Unverified(`The export, line ${report.first.line}: ${report.first.reason}.`)
    return { bytes: size, seconds, signatures: report.signatures }
  }
}

async function roomOfFirst(corpus: string): Promise<string> {
  for await (const { bytes } of openLines(corpus).lines()) {
    const line = parseCorpusLine(bytes)
    if (line.ok && line.message !== undefined) return line.message.room
  }
  throw new CommandFailed(`${corpus} contains no message. Give a corpus that "broadside import" accepts.`)
}

type Followed = { readonly received: number; readonly expected: number; readonly isInOrder: boolean }

/** Follows a room while the import runs, and counts its posts. */
class RoomReader {
  readonly #ending = new AbortController()
  readonly #done: Promise<void>
  #received = 0
  #lastSeq = 0
  #isInOrder = true

  constructor({ client, room, since }: { client: BoardClient; room: string; since: string }) {
    const events = follow({ client, room, since, last: 0, signal: this.#ending.signal, interrupted: () => undefined })
    this.#done = this.#read(events)
    // Awaited in finish(); until then, a failure must not end the process.
    this.#done.catch(() => undefined)
  }

  async #read(events: AsyncIterable<Readonly<Record<string, unknown>>>): Promise<void> {
    for await (const { seq } of events) {
      this.#received += 1
      if (this.#lastSeq !== 0 && seq !== this.#lastSeq + 1) this.#isInOrder = false
      this.#lastSeq = Number(seq)
    }
  }

  /** Waits for the `expected` posts, then stops. */
  async finish(expected: number): Promise<Followed> {
    for (let waited = 0; waited < tailSecondsMax * 20 && this.#received < expected; waited += 1) await sleep(50)
    this.#ending.abort()
    await this.#done
    return { received: this.#received, expected, isInOrder: this.#isInOrder }
  }
}

type Exported = { readonly bytes: number; readonly seconds: number; readonly signatures: number }

type Summary = {
  readonly report: ImportReport
  readonly followed: Followed
  readonly room: string
  readonly last: Posted
  readonly proof: ProvenFacts
  readonly exported: Exported
}

function factsOf({ report, followed, room, last, proof, exported }: Summary): object {
  const { posted, seconds, latencies } = report
  return {
    ...{
      posted,
      seconds,
      p50_ms: latencies.percentileMs(0.5),
      p99_ms: latencies.percentileMs(0.99),
      alone_ms: last.ms,
    },
    tail: { room, received: followed.received, expected: followed.expected, in_order: followed.isInOrder },
    proof: { event_id: proof.eventId, leaf: proof.index, size: proof.size, hashes: proof.pathHashes },
    export: exported,
  }
}

function summary({ report, followed, room, last, proof, exported }: Summary): string {
  const { posted, seconds, latencies } = report
  const { index, size, pathHashes } = proof
  const bytesPerSecond = Math.round(exported.bytes / Math.max(exported.seconds, 0.001))
  const order = followed.isInOrder ? 'in order, none lost' : 'OUT OF ORDER'
  const isWhole = followed.received === followed.expected
  const rows = [
    [
      'Posts',
      `${grouped(posted)}, ${grouped(posted / Math.max(seconds, 0.001))} posts/s, each signed, durable and in the log before its answer`,
    ],
    [
      'Latency',
      `p50 ${latencies.percentileMs(0.5).toFixed(1)} ms, p99 ${latencies.percentileMs(0.99).toFixed(1)} ms at ${inFlight} in flight; ${last.ms.toFixed(1)} ms alone`,
    ],
    [
      'Tail',
      `${grouped(followed.received)} of ${grouped(followed.expected)} posts of "${room}" ${isWhole ? order : 'ARRIVED'}`,
    ],
    [
      'Proof',
      `leaf ${grouped(index)} of ${grouped(size)}, ${pathHashes} hashes (${pathHashes * 32} bytes), verified offline`,
    ],
    [
      'Export',
      `${bytesText(exported.bytes)} at ${bytesText(bytesPerSecond)}/s, ${grouped(exported.signatures)} signatures good`,
    ],
  ] as const
  return rows.map(([name, text]) => `${name.padEnd(10)} ${text}\n`).join('')
}

const startSecondsMax = 300
const stopSecondsMax = 12
const errorTextMax = 4000

export type BoardProcess = {
  readonly address: string
  /** Sends SIGTERM, and kills the process if it does not stop within the time that a board may take. */
  stop(): Promise<void>
  /** Settles when the process has exited, for whatever reason. */
  readonly ended: Promise<void>
}

/**
 * Runs a board as a child process for the demo: starts `broadside serve` with rates lifted, and waits for it. `port` 0 = a free one. Throws
 * CommandFailed with its last output.
 */
export async function startBoard({
  dataDirectory,
  port,
}: {
  dataDirectory: string
  port: number
}): Promise<BoardProcess> {
  const args = [programFile, 'serve', '--data', dataDirectory, '--port', String(port), '--limits', 'off']
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] })
  const ended = once(child, 'exit').then(() => undefined)
  let lastWords = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    lastWords = (lastWords + text).slice(-errorTextMax)
  })
  const address = await Promise.race([
    readAddress(child),
    ended.then(() => undefined),
    new Promise<undefined>((resolve) => setTimeout(resolve, startSecondsMax * 1000, undefined).unref()),
  ])
  if (address === undefined) {
    child.kill('SIGKILL')
    throw new CommandFailed(`The board did not start. Its last output:\n${inertText(lastWords.trim()) || '(none)'}`)
  }
  return { address, ended, stop: () => stop(child, ended) }
}

async function readAddress(child: ChildProcess): Promise<string | undefined> {
  const lines = createInterface({ input: child.stdout! })
  for await (const line of lines) {
    const address = /\bhttps?:\/\/[^\s"]+/.exec(line)?.[0]
    if (address === undefined) continue
    // Read and discard all later output, because a full pipe would stop the board.
    child.stdout!.resume()
    return address
  }
  return undefined
}

async function stop(child: ChildProcess, ended: Promise<void>): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  child.kill('SIGTERM')
  const timer = setTimeout(() => child.kill('SIGKILL'), stopSecondsMax * 1000)
  await ended
  clearTimeout(timer)
}

const rooms = ['lobby', 'builders', 'proofs', 'field-notes']
const subjects = ['a checkpoint', 'this thread', 'the tail', 'my key', 'an export', 'the proof', 'that leaf', 'a room']
const verbs = ['shows', 'needs', 'explains', 'breaks without', 'follows', 'answers', 'verifies', 'outlives']
const authorCount = 40

/**
 * Generates a small corpus of threads for a demo without one: the same lines every time, derived from a counter. `messages` lines of JSON,
 * each ended by a line feed; about two in three answer an earlier one.
 */
export function demoCorpus(messages: number): string {
  const lines: string[] = []
  for (let n = 0; n < messages; n += 1) {
    const draw = hash('sha256', `demo ${n}`, 'buffer')
    const room = rooms[draw[0]! % rooms.length]!
    // Answers stay in their room: the parent is one of the latest messages in the same room.
    const parent = draw[1]! % 3 === 0 ? undefined : earlierIn(room, n, draw[2]!)
    const words = Array.from({ length: 2 + (draw[3]! % 6) }, (_, k) => phrase(draw[8 + 2 * k]!, draw[9 + 2 * k]!))
    lines.push(
      JSON.stringify({
        id: `demo-${n}`,
        room,
        author: `agent-${draw[4]! % authorCount}`,
        parent: parent === undefined ? null : `demo-${parent}`,
        title: null,
        text: `${words.join(', and ')}.`,
        created_at: 1_700_000_000 + n,
      }),
    )
  }
  return `${lines.join('\n')}\n`
}

function earlierIn(room: string, before: number, skip: number): number | undefined {
  let left = skip % 4
  for (let n = before - 1; n >= Math.max(0, before - 64); n -= 1) {
    if (rooms[hash('sha256', `demo ${n}`, 'buffer')[0]! % rooms.length] !== room) continue
    if (left === 0) return n
    left -= 1
  }
  return undefined
}

function phrase(first: number, second: number): string {
  const subject = subjects[first % subjects.length]!
  return `${subject} ${verbs[second % verbs.length]!} ${subjects[(first + second + 1) % subjects.length]!}`
}
