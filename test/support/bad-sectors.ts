/** A disk with bad places: the machine's files, some of which cannot be opened, read or written (EIO) while `isBad`. */
import type { Disk, DiskFile } from '../../storage/disk.ts'
import { machineDisk } from '../../storage/machine-disk.ts'

/** Bytes `from` to before `to` of a file. */
type ByteRange = { readonly from: number; readonly to: number }

export class BadSectors {
  isBad = true
  readonly disk: Disk

  /** `suffix`: of the paths of the files; `place`: the unreadable part, if not all of it is. */
  constructor(
    suffix: string,
    refused: 'openFile' | 'readAt' | 'writeAt',
    { from, to }: ByteRange = { from: 0, to: Number.POSITIVE_INFINITY },
  ) {
    const isAffected = (call: typeof refused, path: string): boolean =>
      this.isBad && call === refused && path.endsWith(suffix)
    this.disk = {
      ...machineDisk,
      openFile: (path, mode): DiskFile => {
        if (isAffected('openFile', path)) refuse('open', path)
        const file = machineDisk.openFile(path, mode)
        return {
          path,
          size: () => file.size(),
          prefetch: (position, bytes) => file.prefetch(position, bytes),
          sync: () => file.sync(),
          syncLater: (done) => file.syncLater(done),
          truncate: (size) => file.truncate(size),
          close: () => file.close(),
          readAt: (into, position) => {
            if (isAffected('readAt', path) && position < to && position + into.length > from) refuse('read', path)
            return file.readAt(into, position)
          },
          writeAt: (bytes, position) => {
            if (isAffected('writeAt', path)) refuse('write', path)
            file.writeAt(bytes, position)
          },
        }
      },
      readWhole: (path) => {
        if (isAffected('readAt', path)) refuse('read', path)
        return machineDisk.readWhole(path)
      },
    }
  }
}

function refuse(syscall: string, path: string): never {
  throw Object.assign(new Error(`EIO: i/o error, ${syscall} '${path}'`), { code: 'EIO', syscall, path })
}
