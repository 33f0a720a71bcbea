/**
 * The log's side of witnessing. Each head (at most one per second) is offered to the policy's witnesses, and their signatures are served
 * under the checkpoint. A witness that is slow, dead or lying has no effect on others: its line is left out. While nothing is posted, the
 * same head is offered again periodically, so that the time in each line stays fresh.
 *
 * A witness can stop the board by reporting a larger head of this log, or a different root at the same size. Then an old copy of the board
 * is running, or a second one with the same key, and signing on would break the log.
 */

import type { Cancel, Timers } from '../../../actors/kernel/timers.ts'
import { parseCheckpoint } from '../../../storage/checkpoint.ts'
import {
  formatNote,
  formatVkey,
  parseNote,
  type SignatureLine,
  type VerifierKey,
  verifyNote,
} from '../../../storage/note.ts'
import type { PolicyWitness } from '../../../storage/tlog-policy.ts'
import { log } from '../../observe.ts'
import { formatAddCheckpoint } from './add-checkpoint.ts'

type RoundOptions = {
  readonly witnesses: readonly PolicyWitness[]
  /** The consistency path between two sizes of the log; undefined if there is no answer now. */
  readonly consistency: (from: number, to: number) => Promise<readonly Buffer[] | undefined>
  /** A witness knows more than this log; `problem` says why nothing may be signed anymore. */
  readonly onRollback: (problem: string) => void
  /** A cosigned head of an earlier run, or ''. Its lines are served again while they fit the newest head. */
  readonly kept: string
  /** Called after a round, with the checkpoint that is now served. */
  readonly onPublished: (checkpoint: string) => void
  /** Unix seconds. */
  readonly now: () => number
  readonly timers: Pick<Timers, 'later'>
  readonly timeoutMs?: number
  readonly paceMs?: number
  readonly refreshMs?: number
}

const timeoutDefaultMs = 1_000
const paceDefaultMs = 1_000
const refreshDefaultMs = 600_000
const answerBytesMax = 16_384
const problemCharsMax = 512
/** How often, in one round, a proof is tried from the size that the witness named. */
const triesMax = 3

/** A witness's last answer. `false`: its signature does not verify. */
type WitnessAnswer = 'signed' | 'refused' | 'false' | 'silent' | 'none'

/** A witness's status, for display. */
export type WitnessStanding = {
  readonly name: string
  readonly vkey: string
  readonly url: string | undefined
  readonly answer: WitnessAnswer
  readonly problem: string
  /** Unix seconds; 0 if never. */
  readonly askedAt: number
  /** The newest head that it signed, 0 if none; the time comes from the witness. */
  readonly signedSize: number
  readonly signedAt: number
}

type Witness = {
  readonly name: string
  readonly url: string | undefined
  readonly key: VerifierKey
  /** The size that it signed last, as far as this board knows. */
  old: number
  /** Its newest signature line, and the text that it signed. */
  line: { readonly text: string; readonly line: SignatureLine } | undefined
  answer: WitnessAnswer
  problem: string
  askedAt: number
}

export class WitnessRound {
  readonly #options: RoundOptions
  readonly #witnesses: Witness[]
  /** The newest head that went through a round, with the signature lines. */
  #published = ''
  #offered = ''
  #newest = ''
  #running: Promise<void> | undefined
  #cancelRound: Cancel | undefined
  #cancelRefresh: Cancel = () => {}
  #closed = false

  constructor(options: RoundOptions) {
    this.#options = options
    this.#witnesses = options.witnesses.map(({ name, key, url }) => {
      const line = lineIn(options.kept, key)
      const old = line === undefined ? 0 : sizeOf(line.text)
      const asked = { url: url?.replace(/\/+$/, ''), answer: 'none', problem: '', askedAt: 0 } as const
      return { name, key, old, line, ...asked }
    })
  }

  /** Whether no witness is queried, so there is nothing to wait for and nothing to add to a head. */
  get isAlone(): boolean {
    return this.#witnesses.every(({ url }) => url === undefined)
  }

  /** Whether every witness that is queried has signed the head that is served. */
  get isComplete(): boolean {
    const text = textOf(this.#published)
    return this.#witnesses.every(({ url, line }) => url === undefined || line?.text === text)
  }

  get standings(): WitnessStanding[] {
    return this.#witnesses.map(({ name, key, url, answer, problem, askedAt, line }) => ({
      name,
      vkey: formatVkey(key),
      url,
      answer,
      problem,
      askedAt,
      signedSize: line === undefined ? 0 : sizeOf(line.text),
      signedAt: line === undefined ? 0 : Number(line.line.signature.readBigUInt64BE(0)),
    }))
  }

  /** Serves a head with the saved lines, without querying the witnesses. */
  serve(checkpoint: string): void {
    this.#newest = checkpoint
    this.#offered = checkpoint
    this.#publish(checkpoint)
  }

  /** The checkpoint to serve, cosigned by the witnesses that have answered. */
  get published(): string {
    return this.#published
  }

  /** Takes a new durable head, which is offered once the current round is over. */
  note(checkpoint: string): void {
    this.#newest = checkpoint
    if (!this.isAlone) this.#schedule()
  }

  /** Runs one round now, for the start. Resolves when every witness has answered or timed out. */
  async first(checkpoint: string): Promise<void> {
    this.#newest = checkpoint
    await this.#round()
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#cancelRound?.()
    this.#cancelRefresh()
    await this.#running
  }

  #schedule(): void {
    if (this.#closed || this.#cancelRound !== undefined || this.#running !== undefined) return
    this.#cancelRound = this.#options.timers.later(() => {
      this.#cancelRound = undefined
      this.#running = this.#round().finally(() => {
        this.#running = undefined
        if (this.#newest !== this.#offered) this.#schedule()
      })
    }, this.#options.paceMs ?? paceDefaultMs)
  }

  async #round(): Promise<void> {
    const checkpoint = this.#newest
    this.#offered = checkpoint
    this.#cancelRefresh()
    await Promise.all(this.#witnesses.map((witness) => this.#ask(witness, checkpoint)))
    this.#publish(checkpoint)
    if (this.isAlone || this.#closed) return
    const { timers, refreshMs = refreshDefaultMs } = this.#options
    this.#cancelRefresh = timers.later(() => this.#schedule(), refreshMs)
  }

  #publish(checkpoint: string): void {
    const note = parseNote(checkpoint)
    if (!note.ok) throw new Error(note.problem)
    const { text, lines: own } = note.value
    const lines = this.#witnesses.flatMap(({ line }) => (line?.text === text ? line.line : []))
    this.#published = formatNote(text, [...own, ...lines])
    this.#options.onPublished(this.#published)
  }

  async #ask(witness: Witness, checkpoint: string): Promise<void> {
    if (witness.url === undefined) return
    witness.askedAt = this.#options.now()
    const { answer, problem } = await this.#answerOf(witness, witness.url, checkpoint)
    witness.answer = answer
    witness.problem = problem.slice(0, problemCharsMax)
    if (answer !== 'signed') log('warn', `witness.${answer}`, { witness: witness.name, problem: witness.problem })
  }

  async #answerOf(witness: Witness, url: string, checkpoint: string): Promise<WitnessReply> {
    try {
      for (let tries = 0; tries < triesMax; tries++) {
        const reply = await this.#offer(witness, url, checkpoint)
        if (reply !== undefined) return reply
      }
      return { answer: 'refused', problem: 'it names a different size each time' }
    } catch (error) {
      return { answer: 'silent', problem: error instanceof Error ? error.message : String(error) }
    }
  }

  /** Returns undefined if the witness named a size to start from. */
  async #offer(witness: Witness, url: string, checkpoint: string): Promise<WitnessReply | undefined> {
    const text = textOf(checkpoint)
    const size = sizeOf(text)
    const path = witness.old === 0 || witness.old === size ? [] : await this.#options.consistency(witness.old, size)
    if (path === undefined) throw new Error('this board gave no consistency proof')
    const answer = await fetch(`${url}/add-checkpoint`, {
      method: 'POST',
      body: formatAddCheckpoint({ old: witness.old, path, checkpoint }),
      redirect: 'error',
      signal: AbortSignal.timeout(this.#options.timeoutMs ?? timeoutDefaultMs),
    })
    const body = await readBounded(answer)
    if (answer.status === 200) {
      const line = lineIn(`${text}\n${body}`, witness.key)
      if (line === undefined) return { answer: 'false', problem: 'its signature does not verify' }
      witness.line = line
      witness.old = size
      return { answer: 'signed', problem: '' }
    }
    if (answer.status === 409) {
      const known = /^(0|[1-9][0-9]{0,15})\n$/.exec(body)?.[1]
      if (known === undefined) return { answer: 'refused', problem: 'it answered 409 without its size' }
      if (Number(known) > size) return this.#rollback(witness, `has signed a head of ${known} entries`, size)
      if (Number(known) === witness.old)
        return { answer: 'refused', problem: `it answered 409 and names the size ${known} that it was offered` }
      witness.old = Number(known)
      return undefined
    }
    if (answer.status === 422 && witness.old === size && size > 0)
      return this.#rollback(witness, 'has signed a different root for the same size', size)
    return { answer: 'refused', problem: `it answered ${answer.status}` }
  }

  #rollback(witness: Witness, what: string, size: number): WitnessReply {
    const problem = `the witness ${witness.name} ${what} of this log, which has ${size} entries here: an older copy of the data directory was restored, or a second board runs with the same key`
    this.#options.onRollback(problem)
    return { answer: 'refused', problem }
  }
}

type WitnessReply = { readonly answer: WitnessAnswer; readonly problem: string }

/** The text of a checkpoint that this board has signed. */
function textOf(checkpoint: string): string {
  const note = parseNote(checkpoint)
  if (!note.ok) throw new Error(note.problem)
  return note.value.text
}

function sizeOf(text: string): number {
  const parsed = parseCheckpoint(text)
  if (!parsed.ok) throw new Error(parsed.problem)
  return parsed.value.size
}

/** This witness's line under a note, if present and valid. Lines of others are ignored. */
function lineIn(note: string, key: VerifierKey): Witness['line'] {
  const parsed = parseNote(note)
  if (!parsed.ok) return undefined
  const { text, lines } = parsed.value
  const line = lines.find(({ name, keyId }) => name === key.name && keyId === key.keyId)
  return line !== undefined && parseCheckpoint(text).ok && verifyNote({ text, lines: [line] }, [key]).ok
    ? { text, line }
    : undefined
}

async function readBounded(answer: Response): Promise<string> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of answer.body ?? []) {
    bytes += chunk.length
    if (bytes > answerBytesMax) throw new Error(`its answer has more than ${answerBytesMax} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}
