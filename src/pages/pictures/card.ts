/** The preview of a link, 1200 by 630 (Open Graph): the author, the place, and the beginning of the text, in the board's style. */
import { advance, drawable, drawText, lineAdvance, wrapped } from './glyphs.ts'
import { Canvas, type Palette } from './png.ts'

const width = 1200
const height = 630
const margin = 76

/** Indexes into the palette; 0 is the paper. */
const ink = 1
const quiet = 2
const red = 3
const shade = 4
const own = 5
/** Colors of seals, in the order of their hues in the style sheet. */
const tones = [
  '#a8344f',
  '#ad3a2c',
  '#a24a00',
  '#8d5b00',
  '#6f6a00',
  '#4c7400',
  '#1c7a2f',
  '#007c55',
  '#007a75',
  '#00758f',
  '#006ca3',
  '#3a60b0',
  '#5f54b3',
  '#7d49a8',
  '#943f92',
  '#a23673',
] as const

export type Card = {
  /** Identity id of the author, whose seal is drawn. */
  readonly author?: string
  readonly name: string
  readonly place: string
  /** Shown in full. */
  readonly headline?: string
  /** Shown as far as it fits. */
  readonly text: string
}

/** The area for the words of a post. */
const wordsTop = 232
const wordsBottom = height - 110

export function card({ author, name, place, headline = '', text }: Card): Promise<Buffer> {
  const canvas = new Canvas(width, height)
  canvas.fill(0, 0, width, 14, red)
  const left = author === undefined ? margin : margin + 150
  if (author !== undefined) drawSeal(canvas, author, margin, 66)
  drawBlock(canvas, name, { x: left, y: 76, bottom: 136, scales: [6, 5, 4, 3], colour: ink })
  drawBlock(canvas, place, { x: left, y: 146, bottom: 186, scales: [4, 3], colour: quiet })
  const block = { x: margin, y: wordsTop, bottom: wordsBottom }
  const end = drawBlock(canvas, headline, { ...block, scales: [7, 6, 5, 4], colour: ink })
  if (headline === '') drawBlock(canvas, text, { ...block, scales: [6, 5], colour: ink })
  // If the headline cannot be drawn, the text that follows it is left out too.
  else if (end > wordsTop) drawBlock(canvas, text, { ...block, y: end + 16, scales: [4], colour: quiet })
  canvas.fill(margin, height - 96, width - 2 * margin, 3, quiet)
  canvas.fill(margin, height - 90, width - 2 * margin, 1, quiet)
  drawText(canvas, 'Broadside', { x: margin, y: height - 68, scale: 5, colour: red })
  drawText(canvas, 'every word signed', {
    x: width - margin - 17 * advance * 4,
    y: height - 64,
    scale: 4,
    colour: quiet,
  })
  const tone = author === undefined ? tones[0] : tones[Number.parseInt(author.slice(5, 6), 16)]!
  const palette: Palette = ['#fbf9f4', '#1d1b18', '#6f685c', '#a82c14', '#f2eee4', tone]
  return canvas.png(palette)
}

function drawSeal(canvas: Canvas, id: string, x: number, y: number): void {
  canvas.fill(x, y, 119, 119, shade)
  const bits = Number.parseInt(id.slice(0, 5), 16)
  for (let cell = 0; cell < 15; cell++) {
    if (((bits >> cell) & 1) === 0) continue
    const column = Math.floor(cell / 5)
    for (const each of [column, 4 - column]) canvas.fill(x + 17 + each * 17, y + 17 + (cell % 5) * 17, 17, 17, own)
  }
}

type Block = {
  readonly x: number
  readonly y: number
  readonly bottom: number
  /** Pixels per dot, largest first: the first scale that fits all words is used, otherwise the last. */
  readonly scales: readonly number[]
  readonly colour: number
}

/**
 * Returns where the block ends. A text with letters that cannot be drawn is left out completely, because a part could change the meaning.
 */
function drawBlock(canvas: Canvas, text: string, { x, y, bottom, scales, colour }: Block): number {
  const letters = drawable(text) ?? ''
  const fits = scales.map((scale) => {
    const columns = Math.floor((width - margin - x) / (advance * scale))
    const linesMax = Math.floor((bottom - y) / (lineAdvance * scale))
    return { scale, linesMax, columns, lines: wrapped(letters, columns, Number.POSITIVE_INFINITY) }
  })
  const { scale, linesMax, columns } = fits.find(({ lines, linesMax }) => lines.length <= linesMax) ?? fits.at(-1)!
  const lines = linesMax < 1 ? [] : wrapped(letters, columns, linesMax)
  for (const [n, line] of lines.entries()) drawText(canvas, line, { x, y: y + n * lineAdvance * scale, scale, colour })
  return y + lines.length * lineAdvance * scale
}
