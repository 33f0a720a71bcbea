/**
 * `broadside restored --lost`: an old backup replaces a newer board that is lost.
 *
 * The lost board signed sizes that this directory would sign again, for other entries. So its log signs nothing more, and the next one
 * begins with an entry that states what is lost. The steps run in this order, each durable before the next; an interrupted call is
 * completed by the same command, with the same result:
 *
 *   1  restored.json: chooses once the name of the next log, the time, and the next recovery epoch
 *   2  lost-acts.json: the redactions, takedowns, and key changes in the copy, for the next start
 *   3  the key of the next log, its first frame, the removal of all older keys
 *   4  sign-ins are removed; board.json gets the new epoch and the time at which delegations ended
 *   5  restored.json is removed
 */

import type { Disk } from '../../storage/disk.ts'
import { beginEpoch, readFacts, restoredFile, signInKeysFile, UnusableDirectory } from '../board-directory.ts'
import type { Config } from '../config.ts'
import { foreignJson } from '../format/foreign-json.ts'
import { logBehind, newerThanLog } from '../log/covered.ts'
import { readMarks } from '../log/mark.ts'
import { endLostLog, type FoundLog, findLog, type LossPlan, unusedOrigin } from '../log/rotation.ts'
import { saveLostActs } from '../lost-acts-file.ts'
import type { Platform } from '../platform.ts'
import { exitCodes, print, type Terminal } from './command-line.ts'
import { type LostCopy, readLostCopy } from './lost-copy.ts'
import { grouped, inertLine } from './terminal.ts'

type LossOptions = {
  readonly config: Config
  /** A mirror or an export of the lost board. */
  readonly copy: string | undefined
  /** Name of the newest log of the lost board. */
  readonly lastLog: string | undefined
  /** Verifier key of the log, for a board that has lost its key. */
  readonly vkey: string | undefined
  /** Skips the confirmation. */
  readonly isConfirmed: boolean
  readonly platform: Pick<Platform, 'clock' | 'random' | 'disk'>
}

type Plan = LossPlan & { readonly generation: string }

/** The caller must hold the lock of the directory. */
export async function restoreLost(request: LossOptions, terminal: Terminal): Promise<0 | 1> {
  const { config, lastLog, vkey, isConfirmed, platform } = request
  const { dataDirectory } = config
  const { disk, random } = platform
  const now = terminal.clock.wallSeconds()
  const options = { ...config, platform, now, vkey, report: () => {} }
  const found = findLog(options)
  const begun = pendingLoss(disk, dataDirectory)
  const isOver = begun === undefined && found.lost !== undefined && found.isNew
  const old = isOver || begun?.next === found.newest.origin ? found.lost! : found.newest
  const tail = newerThanLog(disk, dataDirectory, found.ranges)
  const whole = begun === undefined && !isOver ? wholeBy(disk, config, found) : undefined
  if (whole !== undefined && found.hasKey)
    throw new UnusableDirectory(
      `Nothing indicates that ${dataDirectory} lost data: ${whole} has no newer head of its log than the log itself. If it is a copy all the same, move that file away and run this again.`,
    )
  const copy = request.copy === undefined ? undefined : await readLostCopy(request.copy, withRoot(old))
  const isWhole = whole !== undefined && copy === undefined
  terminal.out(`${found.hasKey ? '' : keyIsLost(old)}${isWhole ? nothingElse(old, tail) : warning(old, copy, tail)}`)
  if (!isConfirmed) {
    terminal.err('Nothing was changed. Add --yes to continue.\n')
    return exitCodes.failed
  }
  const used = [...(copy?.origins ?? []), ...(lastLog === undefined ? [] : [lastLog])]
  const plan = begun ?? {
    next: isOver ? found.newest.origin : unusedOrigin(options, found.newest.origin, used),
    at: now,
    generation: random(16).toString('hex'),
  }
  if (!isOver) disk.writeAtomic(restoredFile(dataDirectory), Buffer.from(`${JSON.stringify({ lost: plan })}\n`))
  if (copy !== undefined)
    saveLostActs(disk, dataDirectory, {
      at: plan.at,
      redacted: copy.redacted,
      moved: copy.moved,
      takenDown: copy.takenDown,
    })
  if (!isOver) {
    endLostLog(options, plan)
    disk.removeFile(signInKeysFile(dataDirectory))
    beginEpoch(disk, dataDirectory, { generation: plan.generation, delegations_ended: plan.at })
    disk.removeFile(restoredFile(dataDirectory))
  }
  const { newest } = findLog(options)
  const { generation } = readFacts(disk, dataDirectory)
  const facts = {
    lost: { log: old.origin, size: old.size },
    next: { log: newest.origin, vkey: newest.vkey },
    generation,
  }
  print(terminal, facts, ended(old, newest, generation))
  return exitCodes.ok
}

/** The plan that an interrupted call has chosen. */
export function pendingLoss(disk: Disk, path: string): Plan | undefined {
  const file = restoredFile(path)
  if (!disk.fileExists(file)) return undefined
  const { lost } = Object(foreignJson(disk.readWhole(file).toString('utf8'))) as { readonly lost?: Plan }
  return typeof lost?.next === 'string' && typeof lost.at === 'number' && typeof lost.generation === 'string'
    ? lost
    : undefined
}

/**
 * The mark that agrees with the log, if nothing indicates a restoration: then nothing is known to be lost. Undefined if something may be.
 * Throws UnusableMark.
 */
function wholeBy(disk: Disk, config: Config, { newest, lost }: FoundLog): string | undefined {
  const { dataDirectory } = config
  if (disk.fileExists(restoredFile(dataDirectory))) return undefined
  if (logBehind(disk, dataDirectory, readFacts(disk, dataDirectory).shards) !== undefined) return undefined
  const marks = readMarks(disk, config)
  const isKnown = ({ vkey, size }: { readonly vkey: string; readonly size: number }): boolean =>
    vkey === newest.vkey ? size <= newest.size : vkey === lost?.vkey
  return marks.every(isKnown) ? marks[0]?.file : undefined
}

type Ended = { readonly origin: string; readonly vkey: string; readonly size: number; readonly checkpoint: string }

function withRoot(log: Ended) {
  return { ...log, root: Buffer.from(log.checkpoint.split('\n')[2]!, 'base64') }
}

const keyIsLost = ({ origin }: Ended) =>
  `The key of ${inertLine(origin)} is lost, so that log signs nothing more. If any backup has the key, stop here and restore it.\n`

/** The log of a board that has lost only its key. */
function nothingElse({ origin, size }: Ended, tail: number): string {
  return `${inertLine(origin)} ends at size ${grouped(size)}. The mark knows of nothing after that.\n${uncovered(tail)}${ending}`
}

const uncovered = (tail: number) =>
  tail === 0 ? '' : `${grouped(tail)} records that it does not cover begin the new log.\n`

function warning({ origin, size }: Ended, copy: LostCopy | undefined, tail: number): string {
  const log = inertLine(origin)
  const ends = `${log} ends at size ${grouped(size)}. Everything after that is lost.\n${uncovered(tail)}\n`
  if (copy === undefined) return `${ends}${mayComeBack}`
  const { redacted, moved, movedUnknown, hidden, takenDown } = copy
  const files = takenDown.length === 0 ? '' : `  files that were taken down everywhere: ${grouped(takenDown.length)}\n`
  const unknown =
    movedUnknown === 0
      ? ''
      : `  moves to other keys of which it has only the entry: ${grouped(movedUnknown)}; an export has them\n`
  const hides =
    hidden === 0 ? '' : `  not the texts that it shows as hidden without a signed command: ${grouped(hidden)}\n`
  return (
    `${ends}The copy goes to entry ${grouped(copy.size)} of ${inertLine(copy.origin)}, and is verified. The next start does again:\n` +
    `  redactions of texts: ${grouped(redacted.length)}, on the word of the lost log, which had their signed commands\n` +
    `  moves to other keys: ${grouped(moved.length)}, by the signatures of both keys\n${files}${unknown}${hides}` +
    `No public copy has these. Do them again from your own notes:\n${inNoCopy}${ending}`
  )
}

const inNoCopy = `  suspensions, hidden texts, and members who were removed from rooms
  attachments that were deleted or taken down, and anything of private rooms
  works that were completed, with their payments
`
const ending = '\nAll delegations and sign-ins end now.\n'
const mayComeBack = `No copy was given with --apply-from. These may come back, if they were done after the backup:
  redacted texts are readable again
  identities that moved to another key: the old key can sign for them again
${inNoCopy}A mirror or an export of the lost board, given with --apply-from, prevents the first two.
${ending}`

function ended({ origin, size }: Ended, next: FoundLog['newest'], generation: string): string {
  return (
    `\n${inertLine(origin)} has ended, and its key is removed.\n` +
    `${inertLine(next.origin)} begins with an entry that says "lost after ${size}". Its key is\n\n  ${inertLine(next.vkey)}\n\n` +
    `Publish this key: readers who pinned the old one cannot learn it from the old log. Give it to the witnesses.\n` +
    `The recovery epoch ${generation} begins with the next start.\n`
  )
}
