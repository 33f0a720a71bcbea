/** What one text of a user may cost and become, whatever is in it. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { cellsIn, cellsMax, markdown } from '../../../src/pages/pieces/markdown.ts'
import { htmlCharsMax, inPart, nodesIn, type RenderItem, rendered } from '../../../src/pages/pieces/rendered.ts'

const whole = '/e/0123'
const cellsOf = (markup: string) => markup.match(/<t[hd][ >]/g)?.length ?? 0
const table = (columns: number, rows: number) =>
  `${'|a'.repeat(columns)}|\n${'|-'.repeat(columns)}|\n${'b\n'.repeat(rows)}`
/** Text without tags and escapes. */
const wordsOf = (markup: string) =>
  markup.replace(/<[^>]*>/g, '').replace(/&#(\d+);/g, (_, code) => String.fromCharCode(code))

/** Lines of which tables are made, and of what surrounds them. */
const tableLines = fc
  .array(
    fc.oneof(
      fc.constantFrom(
        '|a|b|',
        '|-|-|',
        'a|b',
        '-|-',
        '|-',
        ':-|-:',
        '--',
        'x',
        '',
        ' ',
        '> |a|b|',
        '> |-|-|',
        '> x',
        '>',
        '- |a|b|',
        '  |-|-|',
        '  x',
        '1. |a|',
        '   |-|',
        '    |-|-|',
        '```',
        '# a|b',
        '> > |a|',
        '> > |-|',
        '\t|-|-|',
      ),
      fc.integer({ min: 1, max: 30 }).map((columns) => '|a'.repeat(columns)),
      fc.integer({ min: 1, max: 30 }).map((columns) => '|-'.repeat(columns)),
    ),
    { maxLength: 40 },
  )
  .map((lines) => lines.join('\n'))

describe('tables', () => {
  test('never have more cells than were counted before the text was parsed', async () => {
    await fc.assert(
      fc.asyncProperty(tableLines, async (text) => {
        expect(cellsOf((await markdown(text)).text)).toBeLessThanOrEqual(cellsIn(text))
      }),
      { numRuns: 2_000 },
    )
  })

  test.each([
    ['one with a thousand columns', table(1_000, 66)],
    ['fourteen of 200 by 204', Array.from({ length: 14 }, () => table(200, 204)).join('\n')],
    ['one with 5,000 rows of two characters', table(100, 2_800)],
    ['a thousand of one row', `${table(40, 1)}\n`.repeat(70)],
    ['in a quote', table(300, 100).replace(/^/gm, '> ')],
    ['in a list', table(300, 100).replace(/^/gm, '  ').replace('  ', '- ')],
    ['each begun in the rows of another', '|a|\n|-|\n'.repeat(1_400)],
  ])('are confined to their cells: %s', async (_, text) => {
    const made = (await markdown(text)).text
    expect(cellsOf(made)).toBeLessThanOrEqual(cellsMax)
    // Nothing of it is lost: what is not laid out is shown as it was written.
    expect(wordsOf(made).match(/[ab]/g)!.length).toBeGreaterThanOrEqual(text.match(/[ab]/g)!.length)
    expect(made.length).toBeLessThan(8 * text.length + 100_000)
  })

  test('too large to lay out are shown as written, with a note; their surroundings are laid out', async () => {
    const made = (await markdown(`# Before\n\n${table(1_000, 66)}\n*after*\n\n${table(2, 2)}`)).text
    expect(made).toContain('Shown in part: this table has too many cells')
    expect(made).toContain('<h2>Before</h2>')
    expect(made).toContain('<em>after</em>')
    expect(cellsOf(made)).toBe(6)
  })

  test('of ordinary sizes are laid out', async () => {
    const made = (
      await markdown(`${'|a'.repeat(8)}|\n${'|-'.repeat(8)}|\n${`${'|some words'.repeat(8)}|\n`.repeat(490)}`)
    ).text
    expect(cellsOf(made)).toBe(8 * 491)
    expect(made).not.toContain('Shown in part')
  })
})

const hostile = fc
  .array(
    fc.oneof(
      fc.constantFrom(
        '\u200b',
        '\u200e',
        '<',
        '&',
        '@ab ',
        'http://a.b ',
        '<http://a>',
        '[a](b)',
        '*',
        '|',
        '\n',
        '# ',
        '> ',
      ),
      fc.string({ unit: 'binary', maxLength: 4 }),
    ),
    { minLength: 1, maxLength: 30 },
  )
  .chain((parts) => fc.integer({ min: 1, max: 3_000 }).map((times) => parts.join('').repeat(times).slice(0, 65_536)))

test('no text becomes more HTML than a text may, and a missing part is noted', async () => {
  await fc.assert(
    fc.asyncProperty(hostile, fc.constantFrom('text', 'markdown', 'verbatim'), async (text, kind) => {
      const { text: made } = await rendered({ kind, text, whole } as RenderItem)
      expect(made.length).toBeLessThanOrEqual(htmlCharsMax + 1_000)
      const part = inPart({ kind, text, whole } as RenderItem, 'Because.', 2_000).text
      expect(part.length).toBeLessThanOrEqual(2_500)
      expect(part).toContain(`Shown in part. Because. <a href="${whole}">The whole text</a>`)
    }),
    { numRuns: 60 },
  )
})

test('a part of a text is its beginning, and a short one is complete', () => {
  const text = 'It begins so, and goes on. '.repeat(500)
  const part = wordsOf(inPart({ kind: 'text', text, whole }, 'Because.', 2_000).text)
  expect(text.startsWith(part.slice(0, 1_500))).toBe(true)
  expect(wordsOf(inPart({ kind: 'text', text: 'short <b>', whole }, 'Because.', 2_000).text)).toMatch(/^short <b>Shown/)
})

test('the longest text of odd characters is cut where it would become too large', async () => {
  const made = (await rendered({ kind: 'text', text: '\u200b\u200e'.repeat(5_400), whole })).text
  expect(made).toContain('Shown in part. The text is longer than a page can hold.')
  expect(made.length).toBeGreaterThan(htmlCharsMax / 2)
})

test('the cost of a text is counted without laying it out, and grows with its text', () => {
  const nodes = (kind: 'text' | 'markdown', text: string) => nodesIn({ kind, text, whole })
  expect(nodes('text', 'hello world '.repeat(60))).toBeLessThan(5)
  expect(nodes('text', '@ab '.repeat(1_000))).toBeGreaterThan(1_000)
  expect(nodes('text', 'http://a.b '.repeat(1_000))).toBeGreaterThan(1_000)
  expect(nodes('markdown', '<http://a>'.repeat(1_000))).toBeGreaterThan(1_000)
  expect(nodes('markdown', table(1_000, 66))).toBeGreaterThan(cellsMax)
  expect(nodes('markdown', '1. a\n'.repeat(1_000))).toBeGreaterThan(1_000)
  // However bad it is, the parser accepts no more.
  expect(nodes('markdown', '|-*\n'.repeat(16_384))).toBeLessThan(15_000)
})
