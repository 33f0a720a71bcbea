/** One of several boxes that run the same board: whether it leads or follows, and how it takes the lead. */
import { lockDirectory } from '../../storage/lock.ts'
import { isLeaderDirectory } from '../board-directory.ts'
import { pause } from '../clock.ts'
import type { Config } from '../config.ts'
import { explainFailure, isComplete } from '../failure.ts'
import { log } from '../observe.ts'
import { machine } from '../platform.ts'
import { Deposed } from '../replication/halted.ts'
import { NotVacant, takeLead } from '../replication/lead.ts'
import type { RefusedLead } from '../replication/may-lead.ts'
import { openStream } from '../replication/open-stream.ts'
import { standDown } from '../replication/stand-down.ts'
import { StreamAway, UnfitServers } from '../replication/stream.ts'
import { adoptLeaderPositions, removeLeaderPositions } from '../webhooks/leader-positions.ts'

const retryMs = 1_000

/**
 * Whether this box follows: its directory belongs to a follower, or is converted to one because another box has taken its place. Only the
 * stream can tell, so this waits while the stream is unreachable. Thrown errors name their own fix.
 */
export async function isReplaced(config: Config, stopped: Promise<void>): Promise<boolean> {
  const { disk } = machine
  const { dataDirectory: path, lead: settings } = config
  if (settings === undefined) return true
  if (!isLeaderDirectory(disk, path)) return true
  let isStopped = false
  void stopped.then(() => {
    isStopped = true
  })
  for (let reported = ''; ; ) {
    const lock = await lockDirectory(path)
    try {
      return await standDown({ ...machine, config, settings, openStream, report: log })
    } catch (error) {
      const isUnreachable = error instanceof UnfitServers || error instanceof StreamAway
      if ((isComplete(error) && !isUnreachable) || isStopped) throw error
      const { problem } = explainFailure(error)
      if (problem !== reported)
        log('warn', 'lead.unknown', { problem, note: 'Only the stream can tell who leads; retrying.' })
      reported = problem
    } finally {
      lock.release()
    }
    await Promise.race([pause(machine.clock, retryMs), stopped])
  }
}

/** A failed attempt is repeated after this long if nothing relevant changed. */
const refusedForMs = 600_000

/**
 * Takes the place of the leader, which is missing since this message of the stream. On failure this box follows again; resolves with the
 * problem that would prevent another attempt.
 */
export async function leadAfter(config: Config, after: number): Promise<RefusedLead | undefined> {
  const { dataDirectory, lead: settings } = config
  if (settings === undefined) return undefined
  const lock = await lockDirectory(dataDirectory)
  try {
    log('info', 'lead.begun', { after })
    const takeDeliveries = (path: string) => adoptLeaderPositions(machine.disk, path)
    const led = await takeLead({ ...machine, config, settings, openStream, after, report: log, takeDeliveries })
    removeLeaderPositions(machine.disk, dataDirectory)
    log('info', 'lead.taken', led)
    return undefined
  } catch (error) {
    // Of several boxes, only one can be first.
    if (error instanceof NotVacant || error instanceof Deposed) {
      log('info', 'lead.not_taken', { problem: 'Another box was faster, or the leader is back. This box follows it.' })
      return undefined
    }
    const failure = explainFailure(error)
    log('error', 'lead.not_taken', failure)
    const isUnreachable = error instanceof UnfitServers || error instanceof StreamAway
    if (isUnreachable || !isComplete(error)) return undefined
    return { after, problem: failure.problem, untilMs: machine.clock.monotonicMs() + refusedForMs }
  } finally {
    lock.release()
  }
}
