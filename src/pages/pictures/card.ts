/** The preview of a link, 1200 by 630 (Open Graph): whose words, where, and how they begin, on the board's paper. */
import { advance, drawable, drawText, lineAdvance, wrapped } from './glyphs.ts'
import { Canvas, type Palette } from './png.ts'

const width = 1200
const height = 630
const margin = 76

/** Places in the palette; 0 is the paper. */
const ink = 1
const quiet = 2
const red = 3
const shade = 4
const own = 5
/** Tones of seals, in the order of their hues in the style sheet. */
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
  /** Identity id of the author: its seal is drawn. */
  readonly author?: string
  readonly name: string
  readonly place: string
  readonly text: string
}

export function card({ author, name, place, text }: Card): Promise<Buffer> {
  const canvas = new Canvas(width, height)
  canvas.fill(0, 0, width, 14, red)
  let x = margin
  if (author !== undefined) {
    drawSeal(canvas, author, x, 66)
    x += 150
  }
  drawText(canvas, fitted(name, 6, width - x - margin), { x, y: 76, scale: 6, colour: ink })
  drawText(canvas, fitted(place, 4, width - x - margin), { x, y: 146, scale: 4, colour: quiet })
  const scale = 6
  const lines = wrapped(mostlyDrawable(text), Math.floor((width - 2 * margin) / (advance * scale)), 5)
  for (const [n, line] of lines.entries())
    drawText(canvas, line, { x: margin, y: 232 + n * lineAdvance * scale, scale, colour: ink })
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

function fitted(text: string, scale: number, room: number): string {
  const most = Math.floor(room / (advance * scale))
  const { text: letters } = drawable(text)
  return letters.length <= most ? letters : `${letters.slice(0, most - 3)}...`
}

/** Words in letters that cannot be drawn are left out rather than shown in holes. */
function mostlyDrawable(text: string): string {
  const { text: letters, lost } = drawable(text)
  return lost > letters.length / 3 ? '' : letters
}
