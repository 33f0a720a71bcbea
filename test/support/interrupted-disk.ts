/** A disk on which a process ends in the middle of its work. */
import type { Disk } from '../../storage/disk.ts'
import { machineDisk } from '../../storage/machine-disk.ts'

/** The machine's disk until this many modifying steps: then nothing more is written, as after a kill. */
export function diskUntil(steps: number): Disk {
  let left = steps
  const step = (): void => {
    if (left-- <= 0) throw new Error('interrupted')
  }
  const counted = <Given extends readonly unknown[]>(act: (...given: Given) => void) => {
    return (...given: Given): void => {
      step()
      act(...given)
    }
  }
  return {
    ...machineDisk,
    openFile(path, mode) {
      if (mode === 'create') step()
      const file = machineDisk.openFile(path, mode)
      return {
        path,
        size: () => file.size(),
        readAt: (into, position) => file.readAt(into, position),
        prefetch: (position, bytes) => file.prefetch(position, bytes),
        writeAt: counted((bytes, position) => file.writeAt(bytes, position)),
        sync: counted(() => file.sync()),
        syncLater: (done) => file.syncLater(done),
        truncate: counted((size) => file.truncate(size)),
        close: () => file.close(),
      }
    },
    writeAtomic: counted(machineDisk.writeAtomic),
    removeFile: counted(machineDisk.removeFile),
    removeDirectory: counted(machineDisk.removeDirectory),
    removeUnsynced: counted(machineDisk.removeUnsynced),
    renameDurable: counted(machineDisk.renameDurable),
    syncDirectory: counted(machineDisk.syncDirectory),
  }
}
