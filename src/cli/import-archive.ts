/**
 * A directory or zip of small files, read one at a time and never unpacked to disk. Names are only labels: no file is opened by a name from
 * a zip, links in a directory are not followed, and sizes are bounded, so that a zip bomb fails with an error.
 */
import { createReadStream } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { openPromise, type ZipFile } from 'yauzl'
import { CommandFailed } from './command-line.ts'

/** Unpacked size limits of one file, and of all files. */
const fileBytesMax = 64 * 1024 * 1024
const allBytesMax = 8 * 1024 * 1024 * 1024
const filesMax = 500_000
const depthMax = 4

export type ArchivedFile = {
  /** With `/` as the separator. */
  readonly path: string
  /** Its bytes. Throws CommandFailed, also if there are too many. */
  read(): Promise<Buffer>
}

export type Archive = {
  /** Sorted by path. */
  readonly files: readonly ArchivedFile[]
  close(): void
}

/** The files whose names end in `.json`. Throws CommandFailed. */
export async function openArchive(path: string, isZip: boolean): Promise<Archive> {
  try {
    const archive = isZip ? await zipOf(path) : { files: await filesUnder(path, '', 0), close: () => {} }
    archive.files.sort((one, other) => (one.path < other.path ? -1 : 1))
    return archive
  } catch (error) {
    if (error instanceof CommandFailed) throw error
    throw new CommandFailed(
      `${path} cannot be read (${(error as Error).message}). Get a complete copy and run this again.`,
    )
  }
}

async function filesUnder(root: string, under: string, depth: number): Promise<ArchivedFile[]> {
  const found: ArchivedFile[] = []
  for (const entry of await readdir(join(root, under), { withFileTypes: true })) {
    const path = under === '' ? entry.name : `${under}/${entry.name}`
    if (entry.isDirectory() && depth < depthMax) found.push(...(await filesUnder(root, path, depth + 1)))
    else if (entry.isFile() && path.endsWith('.json'))
      found.push({ path, read: () => bounded(async () => createReadStream(join(root, path)), path) })
    if (found.length > filesMax) throw tooMany(root)
  }
  return found
}

async function zipOf(path: string): Promise<{ files: ArchivedFile[]; close(): void }> {
  const zip = await openPromise(path, { autoClose: false })
  try {
    if (zip.entryCount > filesMax) throw tooMany(path)
    return { files: await zipped(zip, path), close: () => zip.close() }
  } catch (error) {
    zip.close()
    throw error
  }
}

async function zipped(zip: ZipFile, zipPath: string): Promise<ArchivedFile[]> {
  const files: ArchivedFile[] = []
  let sum = 0
  // The zip library refuses absolute names, names with `..`, and data whose unpacked size differs from the one stated.
  for await (const entry of zip.eachEntry()) {
    const { fileName, uncompressedSize } = entry
    if (!fileName.endsWith('.json')) continue
    sum += uncompressedSize
    if (sum > allBytesMax)
      throw new CommandFailed(`${zipPath} unpacks to more than ${allBytesMax} bytes. Unpack and import it in parts.`)
    files.push({
      path: fileName,
      async read() {
        if (uncompressedSize > fileBytesMax) throw tooLong(fileName)
        return await bounded(() => zip.openReadStreamPromise(entry), fileName)
      },
    })
  }
  return files
}

async function bounded(open: () => Promise<AsyncIterable<Buffer>>, name: string): Promise<Buffer> {
  const read: Buffer[] = []
  let size = 0
  try {
    for await (const chunk of await open()) {
      size += chunk.length
      if (size > fileBytesMax) throw tooLong(name)
      read.push(chunk)
    }
  } catch (error) {
    if (error instanceof CommandFailed) throw error
    throw new CommandFailed(`${name} cannot be read (${(error as Error).message}).`)
  }
  return Buffer.concat(read)
}

function tooLong(name: string): CommandFailed {
  return new CommandFailed(`${name} has more than ${fileBytesMax} bytes, which no file of an export has.`)
}

function tooMany(path: string): CommandFailed {
  return new CommandFailed(`${path} has more than ${filesMax} files. Import it in parts.`)
}
