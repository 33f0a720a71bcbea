/**
 * A file of lines, plain or gzip, streamed in constant memory.
 *
 * Gzip is recognized by the first two bytes, not by the name.
 */
import { closeSync, createReadStream, openSync, type ReadStream, readSync, statSync } from 'node:fs'
import { createGunzip } from 'node:zlib'
import { CommandFailed } from './command-line.ts'

/** A leaves line of 4,096 hashes is 175 KB; an event that contains 32 KiB of text twice, escaped, is under 512 KB. */
export const lineBytesMax = 4 * 1024 * 1024
const readBytes = 256 * 1024

export type Line = { readonly number: number; readonly bytes: Buffer }

export type LineSource = {
  /**
   * Every line without its end, including empty ones; for an overlong one, its first bytes with `isCut`. Throws CommandFailed if the file
   * is truncated.
   */
  lines(): AsyncGenerator<Line & { readonly isCut: boolean }>
  /** The whole file, unpacked; undefined if it has more bytes than that. Throws CommandFailed as `lines` does. */
  whole(bytesMax: number): Promise<Buffer | undefined>
  /** The first bytes, unpacked: at least one line, if that is no longer than `readBytes`. */
  beginning(): Promise<Buffer>
  /** Share of the file that was read, 0..1. */
  share(): number
  readonly fileBytes: number
}

/** Opens `path`. Throws CommandFailed if there is no such file. The bytes of a line are valid until the next one is requested. */
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
  // Reading starts only with a listener in place, so that it gets any error.
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

/** Splits at LF; a CR before it is dropped. Throws what the stream throws (for example on damaged gzip). */
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
      const bytes = withoutCarriageReturn(isWhole ? chunk.subarray(start, end) : Buffer.concat(pieces))
      yield { number, bytes, isCut }
      pieces = []
      piecesBytes = 0
      isCut = false
      start = end + 1
    }
    keep(chunk.subarray(start))
  }
  if (piecesBytes > 0) yield { number: number + 1, bytes: withoutCarriageReturn(Buffer.concat(pieces)), isCut }
}

function withoutCarriageReturn(bytes: Buffer): Buffer {
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
