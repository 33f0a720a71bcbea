/**
 * A stopped board gives up its leadership: it sends everything it has to the stream, and then a message that it will write nothing more.
 * From then on its directory is a follower's. Any box that has followed may lead (lead.ts), including this one.
 *
 * If this is interrupted at any step, the board does not start, and the same command completes it.
 */
import {
  blobsDirectory,
  followerFile,
  logDirectory,
  readFacts,
  shardDirectories,
  UnusableDirectory,
} from '../board-directory.ts'
import { pause } from '../clock.ts'
import type { Config, ReplicationSettings } from '../config.ts'
import { shardEnds } from '../log/covered.ts'
import { type CoverOptions, openCovered } from '../log/rotation.ts'
import type { Platform } from '../platform.ts'
import { becomeFollower } from './follower-directory.ts'
import { Halted } from './halted.ts'
import { readNamedIn } from './named-files.ts'
import type { OpenStream } from './open-stream.ts'
import { Pump } from './pump.ts'
import { StreamSeal } from './stream-seal.ts'
import { StreamWriter, streamStateIn } from './writer.ts'

type Wanted = Pick<CoverOptions, 'report'> & {
  readonly platform: Platform
  readonly config: Pick<Config, 'dataDirectory' | 'markFile' | 'segmentBytesMax'>
  readonly settings: ReplicationSettings
  readonly openStream: OpenStream
  /** Called with a sentence for each problem that it waits out. */
  readonly tell: (problem: string) => void
}

/** If the servers are away for longer, they need attention first. */
const withinMs = 60_000

/**
 * The caller holds the lock of the directory. Throws Halted, UnusableDirectory, UnfitServers, RolledBack, and what opening a
 * journal throws.
 */
export async function handOver(wanted: Wanted): Promise<void> {
  const { platform, config, settings, report, tell } = wanted
  const { disk, clock, random } = platform
  const { dataDirectory: path } = config
  if (disk.fileExists(followerFile(path))) {
    // An earlier run was interrupted after its last step.
    if (streamStateIn(disk, path)?.handsOver) return
    throw new UnusableDirectory(`${path} is already the directory of a follower: another box may lead.`)
  }
  const facts = readFacts(disk, path)
  const log = openCovered({ ...config, platform, report })
  const { identities } = log
  const ends = { log: log.journal.nextSeq - 1, shards: shardEnds(disk, path, facts.shards) }
  log.close()
  const writer = new StreamWriter(disk, path, random)
  writer.recordHandOver()
  const seal = new StreamSeal({ disk, dataDirectory: path, wallSeconds: clock.wallSeconds, random })
  seal.begin()
  let halted: Halted | undefined
  const shards = shardDirectories(path, facts.shards)
  const pump = new Pump({
    disk,
    clock,
    seal,
    ends,
    from: ends,
    directories: { log: logDirectory(path), shards },
    readNamed: readNamedIn(disk, blobsDirectory(path)),
    ack: settings.ack === 'local' ? settings.ack : 'quorum',
    outageEffect: 'The hand-over waits until it can be reached.',
    acknowledged: () => {},
    openWriter: () => writer,
    openStream: () => wanted.openStream(platform, settings, facts.service_id, 'make'),
    tell: (problem, found) => {
      halted = found
      if (problem !== undefined) tell(problem)
    },
    report: (level, event, said) => {
      if (level !== 'error') report(level, event, said)
    },
  })
  pump.finish()
  const running = pump.run()
  const isOver = await Promise.race([running.then(() => true), pause(clock, withinMs).then(() => false)])
  if (!isOver) await pump.stop()
  await running
  if (halted !== undefined) throw halted
  if (!pump.isHandedOver)
    throw new Halted(
      'The stream was out of reach for a minute. Run this again when its servers can be reached: until then the board does not start.',
    )
  becomeFollower(disk, path, identities)
}
