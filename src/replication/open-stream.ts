/** How a board gets to its stream. A simulation has servers of its own. */
import type { ReplicationSettings } from '../config.ts'
import type { Platform } from '../platform.ts'
import { seedIn } from './seed.ts'
import { JournalStream } from './stream.ts'

/** A stream, as a board uses it that writes there. */
export type BoardStream = Pick<
  JournalStream,
  'check' | 'close' | 'hearCopies' | 'isChecked' | 'publish' | 'read' | 'state'
>

/** Of this service. Where there is no stream, `whenMissing` says what then. Rejects with Halted, UnfitServers and StreamAway. */
export type OpenStream = (
  machine: Pick<Platform, 'disk' | 'clock'>,
  settings: ReplicationSettings,
  serviceId: string,
  whenMissing: 'make' | 'refuse',
) => Promise<BoardStream>

export const openStream: OpenStream = async (
  { disk, clock },
  { servers, keyFile, systemKeyFile },
  serviceId,
  whenMissing,
) => {
  const seeds = { seed: seedIn(disk, keyFile), systemSeed: seedIn(disk, systemKeyFile) }
  return JournalStream.open({ servers, ...seeds, serviceId, clock }, whenMissing)
}
