/**
 * Rounds of backups of one board that is being written to: each is restored, started, and must have everything acknowledged before it
 * began. Posts, attachments and redactions go on all the time; segments are small, so that they are sealed and compacted.
 */
import { createHash, randomBytes } from 'node:crypto'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { blobOf, putFields } from '../support/blobs.ts'
import { type Board, startBoard } from '../support/board-launch.ts'
import { Client, person } from '../support/client.ts'
import { randomFrom } from '../support/load.ts'
import { program } from '../support/program.ts'
import { runProgram } from '../support/run-program.ts'
import { type CrashOptions, Finding } from './rounds.ts'

const writers = 8
/** How many posts are read back from each restored board, besides the newest. */
const postsChecked = 150
const pauseMs = 12

type Posted = { readonly text: string; readonly file?: { readonly id: string; readonly sha256: string } }

class Load {
  readonly posted = new Map<string, Posted>()
  /** Added before the redaction is sent: from then on its outcome is open. */
  readonly redactionRequested = new Set<string>()
  readonly redacted = new Set<string>()
  writes = 0
  readonly #client: Client
  readonly #below: (below: number) => number
  readonly #running: Promise<void>[]
  #isOver = false

  constructor(client: Client, seed: number) {
    this.#client = client
    this.#below = randomFrom(seed)
    this.#running = Array.from({ length: writers }, (_, n) => this.#write(n))
  }

  async end(): Promise<void> {
    this.#isOver = true
    await Promise.all(this.#running)
  }

  async #write(n: number): Promise<void> {
    const room = `room-${n % 5}`
    const own: string[] = []
    while (!this.#isOver) {
      const kind = this.#below(20)
      if (kind === 0 && own.length > 10) await this.#redact(n, own.splice(this.#below(own.length), 1)[0]!)
      else own.push(await this.#post(n, room, kind === 1 && own.length > 0, own.at(-1)))
      this.writes++
      await sleep(pauseMs)
    }
  }

  async #post(n: number, room: string, withFile: boolean, before: string | undefined): Promise<string> {
    const who = person(`backup writer ${n}`)
    const text = `write ${this.writes} ${randomBytes(200).toString('hex')}`
    let file: Posted['file']
    if (withFile) {
      const bytes = randomBytes(3_000)
      const { id } = blobOf(await this.#client.command(who, putFields(bytes, { room, filename: 'x.bin' })))
      file = { id, sha256: createHash('sha256').update(bytes).digest('hex') }
    }
    const more = { ...(file && { attachments: [file.id] }), ...(before !== undefined && { reply_to: before }) }
    const answer = await this.#client.post(who, { room, text, ...more })
    if (answer.status !== 200) throw new Error(`a post was answered with ${answer.text}`)
    const id = answer.data.event_id!
    this.posted.set(id, { text, ...(file && { file }) })
    return id
  }

  async #redact(n: number, id: string): Promise<void> {
    this.redactionRequested.add(id)
    const fields = { operation: 'event.redact', event_id: id, reason: 'taken back' }
    const answer = await this.#client.command(person(`backup writer ${n}`), fields)
    if (answer.status !== 200) throw new Error(`a redaction was answered with ${answer.text}`)
    this.redacted.add(id)
  }
}

/** @throws Finding */
export async function runBackups(options: CrashOptions): Promise<string> {
  const { seed, rounds, seconds = Number.POSITIVE_INFINITY, progress = () => {} } = options
  const directory = join(options.directory, 'board')
  const env = {
    SHARDS: String(options.shards ?? 1),
    PLACEMENT: options.placement,
    HTTP_ENGINE: options.engine ?? 'uws',
    SEGMENT_BYTES: '65536',
    RECENT_EVENTS: '16',
    COMPACT_SECONDS: '1',
  }
  const board = await startBoard({ directory, env })
  const client = await Client.of(board)
  const load = new Load(client, seed)
  const began = performance.now()
  let done = 0
  try {
    while (done < rounds && performance.now() - began < seconds * 1_000) {
      await sleep(300)
      await runRound(options.directory, env, load).catch((error: unknown) => {
        throw new Finding(done + 1, error, board.lines)
      })
      progress(`round ${++done}: ${load.writes} writes, ${load.redacted.size} redacted`)
    }
  } finally {
    await load.end()
    client.close()
    await board.stop()
  }
  return `${done} backups under ${load.writes} writes and ${load.redacted.size} redactions: nothing found`
}

async function runRound(directory: string, env: Readonly<Record<string, string>>, load: Load): Promise<void> {
  const [source, backup, target] = ['board', 'backup', 'restored'].map((name) => join(directory, name))
  const expected = [...load.posted].filter(([id]) => !load.redactionRequested.has(id))
  const gone = [...load.redacted]
  await run(['backup', backup!, '--data', source!])
  await run(['restore', backup!, '--data', target!, '--keys', join(source!, 'keys')])
  await run(['restored', '--data', target!])
  const board = await startBoard({ directory: target!, env })
  try {
    await checkRestored(board, expected, gone, load)
  } finally {
    await board.stop()
  }
  rmSync(target!, { recursive: true })
  rmSync(`${target}.mark`, { force: true })
}

async function checkRestored(
  board: Board,
  expected: readonly (readonly [string, Posted])[],
  gone: readonly string[],
  load: Load,
): Promise<void> {
  const client = await Client.of(board)
  const step = Math.max(1, Math.floor(expected.length / postsChecked))
  const chosen = expected.filter((_, n) => n % step === 0 || n > expected.length - postsChecked)
  for (const [id, { text, file }] of chosen) {
    const { status, data } = await client.get(`/api/events/${id}`)
    // Redacted while the backup was taken: both outcomes are correct.
    if (load.redactionRequested.has(id)) continue
    if (status !== 200 || data.event?.text !== text) throw new Error(`post ${id} was acknowledged and is not there`)
    if (file !== undefined) await checkFile(client, file)
  }
  for (const id of gone.slice(-postsChecked)) {
    const { data } = await client.get(`/api/events/${id}`)
    if (data.event?.text !== undefined) throw new Error(`post ${id} was taken back and is there again`)
  }
  client.close()
}

async function checkFile(client: Client, { id, sha256 }: NonNullable<Posted['file']>): Promise<void> {
  const response = await fetch(`${client.address}/a/${id}`)
  const found = createHash('sha256')
    .update(Buffer.from(await response.arrayBuffer()))
    .digest('hex')
  if (response.status !== 200 || found !== sha256) throw new Error(`file ${id} is not there (${response.status})`)
}

async function run(args: readonly string[]): Promise<void> {
  const { code, errors, output } = await runProgram('/', process.execPath, [program, ...args])
  if (code !== 0) throw new Error(`broadside ${args[0]} ended with ${code}: ${errors}${output}`)
}
