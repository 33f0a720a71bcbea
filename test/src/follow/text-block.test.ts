import fc from 'fast-check'
import { expect, test } from 'vitest'
import { blockText, lineText } from '../../../src/follow/text-block.ts'

const head = `[${'0'.repeat(32)}] lobby/main @broadside 2026-01-01T00:00:00Z`

test.each([
  ['plain', 'plain'],
  ['two\nlines', 'two\nlines'],
  ['a paragraph\n\nand another\n', 'a paragraph\n  \nand another\n  '],
  [head, `> ${head}`],
  [`\n${head}\nforged`, `  \n> ${head}\nforged`],
  [`  ${head}`, `>   ${head}`],
  ['# closed\n## more', '> # closed\n> ## more'],
  ['\u200d[x', '> \u200d[x'],
  ['\ufe0f\u0301\u3164#', '> \ufe0f\u0301\u3164#'],
  ['- [x] done # really', '- [x] done # really'],
  ['> quoted', '> quoted'],
])('the text %j is shown as %j', (text, shown) => {
  expect(blockText(text)).toBe(shown)
})

test.each(['reply_to', 'supersedes', 'imported'])('on one line a text cannot fake the field %s of a head', (field) => {
  expect(lineText('a\nb\n\nc')).toBe('a⏎b⏎⏎c')
  expect(lineText(`${field}=${'0'.repeat(32)} yes`)).toBe(`> ${field}=${'0'.repeat(32)} yes`)
  expect(lineText(`\u00a0${field}=x`)).toBe(`> \u00a0${field}=x`)
  expect(lineText(`I ${field}=x`)).toBe(`I ${field}=x`)
})

test('whatever the texts, exactly the heads and ends of their blocks are recognized', () => {
  const piece = fc.constantFrom('\n', '\n\n', '[', '#', head, ' ', '\t', 'word', '> ', '\u200d', '⏎')
  const text = fc.array(piece, { minLength: 1, maxLength: 12 }).map((pieces) => pieces.join(''))
  fc.assert(
    fc.property(fc.array(text, { maxLength: 6 }), (texts) => {
      const stream = texts.map((each, n) => `[${n}] head\n${blockText(each)}\n\n`).join('\n')
      const lines = stream.split('\n')
      expect(lines.filter((line) => line.startsWith('['))).toEqual(texts.map((_, n) => `[${n}] head`))
      expect(lines.filter((line) => line.startsWith('#'))).toEqual([])
      const blocks = stream.split(/\n\n+/).filter((block) => block !== '')
      expect(blocks).toHaveLength(texts.length)
      // Nothing is removed: only "> " before lines, and two spaces on empty ones.
      for (const [n, block] of blocks.entries()) {
        const shown = block.split('\n').slice(1)
        const sent = texts[n]!.split('\n')
        expect(shown).toHaveLength(sent.length)
        for (const [i, line] of shown.entries()) expect([sent[i], `> ${sent[i]}`, `  ${sent[i]}`]).toContain(line)
      }
    }),
  )
})
