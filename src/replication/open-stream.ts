/** How a board opens its stream. A simulation has its own servers. */
import type { ReplicationSettings } from '../config.ts'
import type { Platform } from '../platform.ts'
import { seedIn } from './seed.ts'
import { JournalStream } from './stream.ts'

/** The stream, for a board that writes to it. */
export type BoardStream = Pick<
  JournalStream,
  'check' | 'close' | 'health' | 'subscribeCopies' | 'isChecked' | 'publish' | 'read' | 'state'
>

/** Opens the stream of this service. `whenMissing`: what to do if there is none. Rejects with Halted, UnfitServers and StreamAway. */
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
