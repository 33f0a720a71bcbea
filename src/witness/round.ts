/**
 * Witnessing, the log's side: each head, at most one a second, is offered to the witnesses of the policy, and what they sign
 * is served under the checkpoint. A witness that is slow, dead or lying costs nobody anything: its line is left out.
 *
 * What a witness can say that stops the board: it has seen a larger head of this log, or another root at the same size.
 * Then an old copy of the board is running, or a second one with the same key, and signing on would break the log.
 */
import { parseCheckpoint } from '../../storage/checkpoint.ts'
import { formatNote, parseNote, type SignatureLine, type VerifierKey, verifyNote } from '../../storage/note.ts'
import type { PolicyWitness } from '../../storage/tlog-policy.ts'
import { log } from '../observe.ts'
import { formatAddCheckpoint } from './add-checkpoint.ts'

export type RoundOptions = {
  readonly witnesses: readonly PolicyWitness[]
  /** The consistency path between two sizes of the log; undefined when there is no answer now. */
  readonly consistency: (from: number, to: number) => Promise<readonly Buffer[] | undefined>
  /** A witness knows more than this log: why nothing may be signed any more. */
  readonly onRollback: (problem: string) => void
  readonly timeoutMs?: number
  readonly paceMs?: number
}

const timeoutDefaultMs = 1_000
const paceDefaultMs = 1_000
const answerBytesMax = 16_384
/** A proof from the size that the witness has named is tried so often in one round. */
const triesMax = 3

type Witness = {
  readonly name: string
  readonly url: string
  readonly key: VerifierKey
  /** The size that it signed last, as far as is known here. */
  old: number
  line: SignatureLine | undefined
}

export class WitnessRound {
  readonly #options: RoundOptions
  readonly #witnesses: Witness[]
  /** The newest head that went through a round, with the lines of those who signed it. */
  #published = ''
  #offered = ''
  #newest = ''
  #running: Promise<void> | undefined
  #timer: NodeJS.Timeout | undefined
  #closed = false

  constructor(options: RoundOptions) {
    this.#options = options
    this.#witnesses = options.witnesses.flatMap(({ name, key, url }) =>
      url === undefined ? [] : [{ name, key, url: url.replace(/\/+$/, ''), old: 0, line: undefined }],
    )
  }

  /** Nobody is asked: there is nothing to wait for, and nothing to add to a head. */
  get isAlone(): boolean {
    return this.#witnesses.length === 0
  }

  /** The checkpoint to serve: cosigned where witnesses have answered. */
  get published(): string {
    return this.#published
  }

  /** A new durable head; it is offered when the round before is over. */
  note(checkpoint: string): void {
    this.#newest = checkpoint
    if (!this.isAlone) this.#schedule()
  }

  /** One round now, for the start: resolves when every witness has answered or had its time. */
  async first(checkpoint: string): Promise<void> {
    this.#newest = checkpoint
    await this.#round()
  }

  async close(): Promise<void> {
    this.#closed = true
    clearTimeout(this.#timer)
    await this.#running
  }

  #schedule(): void {
    if (this.#closed || this.#timer !== undefined || this.#running !== undefined) return
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      this.#running = this.#round().finally(() => {
        this.#running = undefined
        if (this.#newest !== this.#offered) this.#schedule()
      })
    }, this.#options.paceMs ?? paceDefaultMs)
    this.#timer.unref()
  }

  async #round(): Promise<void> {
    const checkpoint = this.#newest
    this.#offered = checkpoint
    await Promise.all(this.#witnesses.map((witness) => this.#ask(witness, checkpoint)))
    const note = parseNote(checkpoint)
    if (!note.ok) throw new Error(note.problem)
    const lines = this.#witnesses.flatMap(({ line }) => line ?? [])
    this.#published = formatNote(note.value.text, [...note.value.lines, ...lines])
  }

  async #ask(witness: Witness, checkpoint: string): Promise<void> {
    witness.line = undefined
    try {
      for (let tries = 0; tries < triesMax; tries++) if (await this.#offer(witness, checkpoint)) return
      log('warn', 'witness.conflict', { witness: witness.name, problem: 'it names another size each time' })
    } catch (error) {
      log('warn', 'witness.silent', {
        witness: witness.name,
        problem: error instanceof Error ? error.message : String(error),
      })
    }
  }

  /** True: the round is over for this witness. False: it named the size to begin from. */
  async #offer(witness: Witness, checkpoint: string): Promise<boolean> {
    const { size } = sizeOf(checkpoint)
    const path = witness.old === 0 || witness.old === size ? [] : await this.#options.consistency(witness.old, size)
    if (path === undefined) throw new Error('this board gave no consistency proof')
    const answer = await fetch(`${witness.url}/add-checkpoint`, {
      method: 'POST',
      body: formatAddCheckpoint({ old: witness.old, path, checkpoint }),
      redirect: 'error',
      signal: AbortSignal.timeout(this.#options.timeoutMs ?? timeoutDefaultMs),
    })
    const text = await readBounded(answer)
    if (answer.status === 200) {
      witness.line = goodLine(checkpoint, text, witness.key)
      if (witness.line === undefined)
        log('warn', 'witness.false', { witness: witness.name, problem: 'its signature does not verify' })
      else witness.old = size
      return true
    }
    if (answer.status === 409) {
      const known = /^(0|[1-9][0-9]{0,15})\n$/.exec(text)?.[1]
      if (known === undefined) throw new Error('it answered 409 without its size')
      if (Number(known) > size) this.#rollback(witness, `has signed a head of ${known} entries`, size)
      if (Number(known) > size || Number(known) === witness.old) return true
      witness.old = Number(known)
      return false
    }
    if (answer.status === 422 && witness.old === size && size > 0) {
      this.#rollback(witness, 'has signed another root for the same size', size)
      return true
    }
    throw new Error(`it answered ${answer.status}`)
  }

  #rollback(witness: Witness, what: string, size: number): void {
    this.#options.onRollback(
      `the witness ${witness.name} ${what} of this log, which has ${size} entries here: an older copy of the data directory was put back, or a second board runs with the same key`,
    )
  }
}

function sizeOf(checkpoint: string): { size: number } {
  const note = parseNote(checkpoint)
  const parsed = note.ok ? parseCheckpoint(note.value.text) : note
  if (!parsed.ok) throw new Error(parsed.problem)
  return parsed.value
}

/** The witness's own line, if there is one and it verifies. Lines of others are not taken. */
function goodLine(checkpoint: string, answer: string, key: VerifierKey): SignatureLine | undefined {
  const own = parseNote(checkpoint)
  const cosigned = parseNote(`${own.ok ? own.value.text : ''}\n${answer}`)
  if (!cosigned.ok) return undefined
  const line = cosigned.value.lines.find(({ name, keyId }) => name === key.name && keyId === key.keyId)
  if (line === undefined) return undefined
  return verifyNote({ text: cosigned.value.text, lines: [line] }, [key]).ok ? line : undefined
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
