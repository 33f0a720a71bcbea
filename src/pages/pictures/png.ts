/**
 * PNG (W3C PNG third edition) of an indexed picture with at most 16 colors: four bits per pixel, rows without a filter, which is best for
 * flat colors. 1200 by 630 pixels become 3 to 9 KB.
 */
import { promisify } from 'node:util'
import { crc32, deflate } from 'node:zlib'

const compress = promisify(deflate)

/** `#rrggbb` each. */
export type Palette = readonly string[]

export class Canvas {
  readonly width: number
  readonly height: number
  readonly #rows: Buffer
  readonly #stride: number

  constructor(width: number, height: number) {
    this.width = width
    this.height = height
    this.#stride = 1 + Math.ceil(width / 2)
    this.#rows = Buffer.alloc(this.#stride * height)
  }

  /** A filled rectangle; parts outside the canvas are ignored. */
  fill(x: number, y: number, width: number, height: number, colour: number): void {
    const left = Math.max(0, x)
    const right = Math.min(this.width, x + width)
    const bottom = Math.min(this.height, y + height)
    if (left >= right) return
    // A byte is two pixels: bytes that are covered completely are filled in one call.
    const firstWhole = (left + 1) >> 1
    const endWhole = right >> 1
    for (let row = Math.max(0, y); row < bottom; row++) {
      const start = row * this.#stride + 1
      if (left % 2 === 1) this.#rows[start + (left >> 1)] = (this.#rows[start + (left >> 1)]! & 0xf0) | colour
      if (firstWhole < endWhole) this.#rows.fill((colour << 4) | colour, start + firstWhole, start + endWhole)
      if (right % 2 === 1) this.#rows[start + endWhole] = (this.#rows[start + endWhole]! & 0x0f) | (colour << 4)
    }
  }

  async png(palette: Palette): Promise<Buffer> {
    const header = Buffer.alloc(13)
    header.writeUInt32BE(this.width, 0)
    header.writeUInt32BE(this.height, 4)
    // Four bits, indexed, deflate, adaptive filters (none is used), not interlaced.
    header.set([4, 3, 0, 0, 0], 8)
    const colours = Buffer.from(palette.map((colour) => colour.slice(1)).join(''), 'hex')
    return Buffer.concat([
      Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]),
      chunk('IHDR', header),
      chunk('PLTE', colours),
      chunk('IDAT', await compress(this.#rows, { level: 6 })),
      chunk('IEND', Buffer.alloc(0)),
    ])
  }
}

function chunk(type: string, data: Buffer): Buffer {
  const length = Buffer.alloc(4)
  length.writeUInt32BE(data.length)
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data])
  const check = Buffer.alloc(4)
  check.writeUInt32BE(crc32(body))
  return Buffer.concat([length, body, check])
}
