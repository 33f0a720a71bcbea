/**
 * A file of lines, plain or gzip, read as a stream at constant memory.
 *
 * Its first two bytes show whether it is gzip, not its name.
 */
import { closeSync, createReadStream, openSync, type ReadStream, readSync, statSync } from 'node:fs'
import { createGunzip } from 'node:zlib'
import { CommandFailed } from './command-line.ts'

/** A leaves line of 4,096 hashes is 175 KB; an event with 32 KiB of text twice in it, escaped, under 512 KB. */
export const lineBytesMax = 4 * 1024 * 1024
const readBytes = 256 * 1024

export type Line = { readonly number: number; readonly bytes: Buffer }

export type LineSource = {
  /**
   * Every line without its end, the empty ones too; an over-long one comes as its first bytes with `isCut`. Throws CommandFailed
   * where the file ends before it should.
   */
  lines(): AsyncGenerator<Line & { readonly isCut: boolean }>
  /** All of it, unpacked; undefined: it has more bytes than that. Throws CommandFailed as `lines` does. */
  whole(bytesMax: number): Promise<Buffer | undefined>
  /** Its first bytes, unpacked: a line at least where it is no longer than `readBytes`. */
  beginning(): Promise<Buffer>
  /** Share of the file that was read, 0..1. */
  share(): number
  readonly fileBytes: number
}

/** Opens `path`. Throws CommandFailed when there is no such file. Bytes of a line are good until the next one is asked for. */
export function openLines(path: string): LineSource {
  let fileBytes: number
  let isGzip: boolean
  try {
    fileBytes = statSync(path).size
    isGzip = beginsLikeGzip(path)
  } catch (error) {
    throw new CommandFailed(`${path} cannot be read (${(error as Error).message}). Check the file's name.`)
  }
  let file: ReadStream | undefined
  // Nothing is read before there is a listener, which then gets any error.
  async function* reading<Part>(read: (chunks: AsyncIterable<Buffer>) => AsyncIterable<Part>): AsyncGenerator<Part> {
    file = createReadStream(path, { highWaterMark: readBytes })
    const bytes = isGzip ? file.pipe(createGunzip({ chunkSize: readBytes })) : file
    file.on('error', (error) => bytes.destroy(error))
    try {
      yield* read(bytes as AsyncIterable<Buffer>)
    } catch (error) {
      throw new CommandFailed(
        `${path} cannot be read to its end (${(error as Error).message}). Get the complete file and run this again.`,
      )
    } finally {
      file.destroy()
    }
  }
  return {
    lines: () => reading(splitLines),
    async whole(bytesMax) {
      const pieces: Buffer[] = []
      let size = 0
      for await (const chunk of reading((chunks) => chunks)) {
        size += chunk.length
        if (size > bytesMax) return undefined
        pieces.push(chunk)
      }
      return Buffer.concat(pieces)
    },
    async beginning() {
      for await (const chunk of reading((chunks) => chunks)) return chunk
      return Buffer.alloc(0)
    },
    share: () => (fileBytes === 0 ? 1 : Math.min(1, (file?.bytesRead ?? 0) / fileBytes)),
    fileBytes,
  }
}

/** Splits at LF; a CR before it is dropped. Throws what the stream throws (a damaged gzip, for one). */
export async function* splitLines(chunks: AsyncIterable<Buffer>): AsyncGenerator<Line & { isCut: boolean }> {
  let number = 0
  let pieces: Buffer[] = []
  let piecesBytes = 0
  let isCut = false
  const keep = (piece: Buffer): void => {
    const room = lineBytesMax - piecesBytes
    if (piece.length > room) isCut = true
    if (room > 0 && piece.length > 0) pieces.push(piece.subarray(0, room))
    piecesBytes += Math.min(room, piece.length)
  }
  for await (const chunk of chunks) {
    let start = 0
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, start)) {
      number += 1
      const isWhole = piecesBytes === 0
      if (!isWhole) keep(chunk.subarray(start, end))
      const bytes = withoutReturn(isWhole ? chunk.subarray(start, end) : Buffer.concat(pieces))
      yield { number, bytes, isCut }
      pieces = []
      piecesBytes = 0
      isCut = false
      start = end + 1
    }
    keep(chunk.subarray(start))
  }
  if (piecesBytes > 0) yield { number: number + 1, bytes: withoutReturn(Buffer.concat(pieces)), isCut }
}

function withoutReturn(bytes: Buffer): Buffer {
  return bytes.at(-1) === 13 ? bytes.subarray(0, -1) : bytes
}

function beginsLikeGzip(path: string): boolean {
  const file = openSync(path, 'r')
  try {
    const magic = Buffer.alloc(2)
    return readSync(file, magic, 0, 2, 0) === 2 && magic[0] === 0x1f && magic[1] === 0x8b
  } finally {
    closeSync(file)
  }
}
