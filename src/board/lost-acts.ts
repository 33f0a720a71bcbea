/**
 * Replays the redactions, takedowns, and key changes that a lost board made after the backup that replaces it. The first start applies them
 * before anything is answered. `broadside restored --lost --apply-from` derives the file from a copy of what the lost board had published.
 *
 * Each act is applied once, however often a start is interrupted: the file is removed after the last one.
 */
import type { Disk } from '../../storage/disk.ts'
import { type Clock, pause } from '../clock.ts'
import type { BoardAuthor, CommandPath } from '../command/ports.ts'
import { envelopeOf, type Reply } from '../format/reply.ts'
import { lostActsFile, readLostActs } from '../lost-acts-file.ts'

type Options = {
  readonly disk: Disk
  /** The data directory. */
  readonly path: string
  readonly boardAuthor: BoardAuthor
  readonly front: Pick<CommandPath, 'execute'>
  readonly later: Clock['later']
  readonly report: (level: 'info' | 'warn', event: string, facts: Readonly<Record<string, unknown>>) => void
}

/** Redactions in flight at a time: each sync of a shard covers many. */
const concurrentMax = 64
const triesMax = 20
const retryMs = 250

/** Applies the acts again. Rejects if an actor does not answer: then nothing may be shown. */
export async function applyLostActs(options: Options): Promise<void> {
  const { disk, path, boardAuthor, front, report } = options
  const acts = readLostActs(disk, path)
  if (acts === undefined) return
  const reason = 'taken back on this board before it was restored from a backup'
  let done = 0
  for (const move of acts.moved) {
    const body = Buffer.from(JSON.stringify(move))
    // Sent as the board's own: the signatures are checked, but not the timestamp of an act that was accepted once.
    done += await one(options, move.operation, (respond) => front.execute(body, { via: 'board', address: '' }, respond))
  }
  const redact = (id: string): Promise<0 | 1> => {
    const fields = { operation: 'event.redact', event_id: id, reason }
    return one(options, id, (respond) => boardAuthor.send(fields, { cause: `lost:${id}`, at: acts.at }, respond))
  }
  const { takenDown = [] } = acts
  for (const target of takenDown) {
    const fields = { operation: 'blob.takedown', target, reason }
    done += await one(options, target, (respond) =>
      boardAuthor.send(fields, { cause: `lost:${target}`, at: acts.at }, respond),
    )
  }
  for (let from = 0; from < acts.redacted.length; from += concurrentMax)
    for (const each of await Promise.all(acts.redacted.slice(from, from + concurrentMax).map(redact))) done += each
  disk.removeFile(lostActsFile(path))
  report('info', 'lost_acts.done', { done, of: acts.moved.length + takenDown.length + acts.redacted.length })
}

/** Refusals that mean the restored board never had the thing, or has applied the act already. */
const expectedRefusals: ReadonlySet<string> = new Set(['not_found', 'wrong_state', 'key_rotated'])

/** 1 if applied; 0 if not needed, or refused, which is reported. */
async function one(
  { report, later }: Options,
  what: string,
  send: (respond: (reply: Reply | undefined) => void) => void,
): Promise<0 | 1> {
  for (let tries = 1; ; tries++) {
    const reply = await new Promise<Reply | undefined>((resolve) => send(resolve))
    if (reply?.status === 200) return 1
    const error = reply === undefined ? undefined : envelopeOf(reply).error
    if (error !== undefined && expectedRefusals.has(error.code)) return 0
    const isLater = error === undefined || error.code === 'overloaded'
    if (!isLater) {
      report('warn', 'lost_acts.refused', { what, problem: error.message })
      return 0
    }
    if (tries === triesMax) throw new Error(`an act from before the restore could not be repeated: ${what}`)
    await pause({ later }, retryMs)
  }
}
