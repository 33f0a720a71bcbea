/**
 * Letters for preview pictures: the common 5 by 8 dot matrix of small displays, for ASCII and for Latin letters that are an ASCII letter
 * with one mark. One byte per column, the lowest bit at the top. Large dots give the board a distinct look, and no font has to be shipped.
 */
import type { Canvas } from './png.ts'

const columns = Buffer.from(
  [
    '0000000000 00005f0000 0007000700 147f147f14 242a7f2a12 2313086462 3649562050 0008070300',
    '001c224100 0041221c00 2a1c7f1c2a 08083e0808 0080703000 0808080808 0000606000 2010080402',
    '3e5149453e 00427f4000 7249494946 2141494d33 1814127f10 2745454539 3c4a494931 4121110907',
    '3649494936 464949291e 0000140000 0040340000 0008142241 1414141414 0041221408 0201590906',
    '3e415d594e 7c1211127c 7f49494936 3e41414122 7f4141413e 7f49494941 7f09090901 3e41415173',
    '7f0808087f 00417f4100 2040413f01 7f08142241 7f40404040 7f021c027f 7f0408107f 3e4141413e',
    '7f09090906 3e4151215e 7f09192946 2649494932 03017f0103 3f4040403f 1f2040201f 3f4038403f',
    '6314081463 0304780403 6159494d43 007f414141 0204081020 004141417f 0402010204 4040404040',
    '0003070800 2054547840 7f28444438 3844444428 384444287f 3854545418 00087e0902 18a4a49c78',
    '7f08040478 00447d4000 2040403d00 7f10284400 00417f4000 7c04780478 7c08040478 3844444438',
    'fc18242418 18242418fc 7c08040408 4854545424 04043f4424 3c4040207c 1c2040201c 3c4030403c',
    '4428102844 4c9090907c 4464544c44 0008364100 0000770000 0041360800 0201020402',
  ]
    .join('')
    .replaceAll(' ', ''),
  'hex',
)

/** Columns from one letter to the next, and rows from one line to the next. */
export const advance = 6
export const lineAdvance = 10

/** Combining marks as dots in the two rows above a letter, or the two rows below it: five columns each, leftmost bit first. */
const above: Readonly<Record<string, readonly [number, number]>> = {
  '\u0300': [0b01000, 0b00100],
  '\u0301': [0b00010, 0b00100],
  '\u0302': [0b00100, 0b01010],
  '\u0303': [0b01101, 0b10110],
  '\u0304': [0b00000, 0b11111],
  '\u0306': [0b10001, 0b01110],
  '\u0307': [0b00000, 0b00100],
  '\u0308': [0b00000, 0b01010],
  '\u030a': [0b00110, 0b00110],
  '\u030b': [0b01001, 0b10010],
  '\u030c': [0b01010, 0b00100],
}
const below: Readonly<Record<string, readonly [number, number]>> = {
  '\u0323': [0b00000, 0b00100],
  '\u0326': [0b00100, 0b01000],
  '\u0327': [0b00100, 0b01000],
  '\u0328': [0b00100, 0b00110],
}
type Dots = readonly (readonly [column: number, row: number])[]
const slash: Dots = [0, 1, 2, 3, 4].map((column) => [column, 6 - column])
/** Letters with a stroke, which have no decomposition. */
const struck: Readonly<Record<string, Letter>> = {
  ø: { base: 'o', stroke: slash },
  Ø: { base: 'O', stroke: slash },
  ł: {
    base: 'l',
    stroke: [
      [1, 4],
      [3, 2],
    ],
  },
  Ł: {
    base: 'L',
    stroke: [
      [1, 3],
      [2, 2],
    ],
  },
  đ: {
    base: 'd',
    stroke: [
      [2, 1],
      [3, 1],
    ],
  },
  Đ: {
    base: 'D',
    stroke: [
      [1, 3],
      [2, 3],
    ],
  },
}
const spelled: Readonly<Record<string, string>> = {
  ...{ '‘': "'", '’': "'", '“': '"', '”': '"', '„': '"', '«': '"', '»': '"', '–': '-', '—': '-', '·': '-', '•': '-' },
  ...{ ß: 'ss', ẞ: 'SS', æ: 'ae', Æ: 'AE', œ: 'oe', Œ: 'OE', ı: 'i' },
}

/** Pictographs, their joiners and modifiers, and invisible characters. */
const notWords = /\p{Extended_Pictographic}|\p{Emoji_Modifier}|\p{Regional_Indicator}|\p{Cc}|\p{Cf}|\ufe0f|\u20e3/gu

/** `text` in drawable characters, one UTF-16 unit each; undefined if a character cannot be drawn. Pictographs are left out. */
export function drawable(text: string): string | undefined {
  const characters = text
    .replace(notWords, (each) => (/\s/.test(each) ? each : ''))
    .normalize('NFKC')
    .replace(/[^\x20-\x7e]/gu, (each) => spelled[each] ?? each)
    .replace(/\s+/gu, ' ')
    .trim()
  return [...characters].every((each) => partsOf(each) !== undefined) ? characters : undefined
}

type Letter = { readonly base: string; readonly mark?: string; readonly stroke?: Dots }

function partsOf(character: string): Letter | undefined {
  if (/^[\x20-\x7e]$/.test(character)) return { base: character }
  if (struck[character] !== undefined) return struck[character]
  const [, letter, mark] = /^([A-Za-z])(\p{M})$/u.exec(character.normalize('NFD')) ?? []
  if (letter === undefined || mark === undefined || (above[mark] ?? below[mark]) === undefined) return undefined
  return { base: letter, mark }
}

/** `scale`: pixels per dot. */
export function drawText(
  canvas: Canvas,
  text: string,
  at: { x: number; y: number; scale: number; colour: number },
): void {
  const { y, scale, colour } = at
  for (const [n, character] of [...text].entries()) {
    const letter = partsOf(character)
    if (letter === undefined) continue
    const x = at.x + n * advance * scale
    const dot = (column: number, row: number): void =>
      canvas.fill(x + column * scale, y + row * scale, scale, scale, colour)
    const glyph = (letter.base.charCodeAt(0) - 0x20) * 5
    // An i with a mark has no dot.
    const firstRow = letter.mark !== undefined && above[letter.mark] !== undefined && /[ij]/.test(letter.base) ? 1 : 0
    for (let column = 0; column < 5; column++) {
      const bits = columns[glyph + column] ?? 0
      for (let row = firstRow; row < 8; row++) if (((bits >> row) & 1) === 1) dot(column, row)
    }
    drawMark(letter, dot)
  }
}

function drawMark({ base, mark = '', stroke = [] }: Letter, dot: (column: number, row: number) => void): void {
  for (const [column, row] of stroke) dot(column, row)
  const rows = above[mark] ?? below[mark]
  if (rows === undefined) return
  const top = mark in below ? 7 : /[A-Zbdfhklt]/.test(base) ? -2 : -1
  for (const [n, bits] of rows.entries())
    for (let column = 0; column < 5; column++) if (((bits >> (4 - column)) & 1) === 1) dot(column, top + n)
}

/** Lines of at most `columnsMax` letters, broken between words if possible. */
export function wrapped(text: string, columnsMax: number, linesMax: number): string[] {
  const lines: string[] = []
  let rest = text
  while (rest !== '' && lines.length < linesMax) {
    const space = rest.length <= columnsMax ? rest.length : rest.lastIndexOf(' ', columnsMax)
    const cut = space > columnsMax / 2 ? space : Math.min(rest.length, columnsMax)
    lines.push(rest.slice(0, cut).trim())
    rest = rest.slice(cut).trim()
  }
  if (rest !== '') lines[linesMax - 1] = `${lines[linesMax - 1]!.slice(0, columnsMax - 3).trimEnd()}...`
  return lines
}
