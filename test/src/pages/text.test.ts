/** What pages make of any text: laws that hold for every string. */
import { inflateSync } from 'node:zlib'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { card } from '../../../src/pages/pictures/card.ts'
import { wrapped } from '../../../src/pages/pictures/glyphs.ts'
import { diffHtml } from '../../../src/pages/pieces/diff.ts'
import { addressOf, html } from '../../../src/pages/pieces/html.ts'
import { markdown } from '../../../src/pages/pieces/markdown.ts'
import { beginning, excerpt, textHtml } from '../../../src/pages/pieces/text.ts'

/** Strings that are likely to break out of something. */
const hostile = fc
  .array(
    fc.oneof(
      fc.constantFrom(
        '<',
        '>',
        '"',
        "'",
        '&',
        '`',
        '=',
        '/',
        ' ',
        '\n',
        '\u202e',
        '\u200b',
        '\0',
        '](',
        '[',
        '!',
        '@a1',
        '#',
        '|',
      ),
      fc.constantFrom(
        '<script>',
        '</p>',
        '<!--',
        'javascript:',
        'https://a.example/',
        'onerror=',
        '-->',
        '&lt;',
        'data:',
      ),
      fc.string({ unit: 'binary', maxLength: 6 }),
    ),
    { maxLength: 40 },
  )
  .map((parts) => parts.join(''))

const entities: Readonly<Record<string, string>> = { lt: '<', gt: '>', amp: '&', quot: '"' }
/** The text of markup, without its tags. */
function textOf(markup: string): string {
  return markup
    .replace(/<span class="odd">U\+([0-9A-F]+)<\/span>/g, (_, number: string) =>
      String.fromCodePoint(Number.parseInt(number, 16)),
    )
    .replace(/<[^>]*>/g, '')
    .replace(/&#(\d+);|&(\w+);/g, (whole, number: string | undefined, name: string) =>
      number === undefined ? (entities[name] ?? whole) : String.fromCodePoint(Number(number)),
    )
}

/** Tags in markup that are not in this list. */
function strangers(markup: string, known: readonly string[]): string[] {
  return [...markup.matchAll(/<\/?([^\s>]*)[^>]*>?/g)].map(([, name]) => name!).filter((name) => !known.includes(name))
}

describe('any text', () => {
  test('stays text between tags and in attributes, and can be read back', () => {
    fc.assert(
      fc.property(hostile, (text) => {
        const made = html`<p title="${text}">${text}</p>`.text
        expect(strangers(made, ['p', 'span'])).toEqual([])
        const [, attribute] = /^<p title="([^"]*)">/.exec(made) ?? []
        expect(attribute).not.toMatch(/[<>"']/)
        // More than six stacked marks, and long runs of invisible characters, are shortened.
        const plain = !/\p{M}{7}/u.test(text) && !/(.)\1{7}/su.test(text) && text.isWellFormed()
        if (plain) expect(textOf(made)).toBe(text)
        expect(made.replace(/[\n\t\u200c\u200d]/g, '')).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u)
      }),
    )
  })

  test('has links only of http(s), which lead where they say and pass nothing on', () => {
    fc.assert(
      fc.property(hostile, (text) => {
        const made = textHtml(text).text
        expect(strangers(made, ['a', 'span'])).toEqual([])
        for (const [, href, rest] of made.matchAll(/<a (?:class="mention" )?href="([^"]*)"([^>]*)>/g)) {
          if (href!.startsWith('/i/')) continue
          expect(addressOf(href!.replace(/&#(\d+);/g, (_, n: string) => String.fromCodePoint(Number(n))))).toBeDefined()
          expect(rest).toBe(' rel="nofollow ugc noopener noreferrer"')
        }
      }),
    )
  })

  test('as Markdown makes only the elements of Markdown, and no address that runs', async () => {
    const known =
      'p h2 h3 h4 h5 h6 strong em code pre ul ol li blockquote a br hr s section table thead tbody tr th td span'
    await fc.assert(
      fc.asyncProperty(hostile, async (text) => {
        const made = (await markdown(text)).text
        expect(strangers(made, known.split(' '))).toEqual([])
        expect(made).not.toMatch(/href="(?!https?:)/)
        expect(made).not.toMatch(/<[^>]* (on\w+|style|src|id)=/)
      }),
    )
  })

  test('compared with another shows what both have, and what only one has', async () => {
    await fc.assert(
      fc.asyncProperty(fc.string({ maxLength: 60 }), fc.string({ maxLength: 60 }), async (before, after) => {
        const made = (await diffHtml(before, after)).text
        expect(strangers(made, ['div', 'ins', 'del', 'span', 'p'])).toEqual([])
        if (before === after || !made.startsWith('<div')) return
        const side = (mine: string, other: string) =>
          textOf(made.replace(new RegExp(`<${other}>.*?</${other}>`, 'gs'), '').replaceAll(`<${mine}>`, ''))
        expect(side('ins', 'del')).toBe(after)
        expect(side('del', 'ins')).toBe(before)
      }),
    )
  })

  test('begins with its first words, whole letters, on one line', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', maxLength: 300 }), fc.integer({ min: 4, max: 60 }), (text, most) => {
        for (const words of [excerpt(text, most), beginning({ text, format: 'markdown' }, most)!]) {
          expect([...words].length).toBeLessThanOrEqual(most)
          expect(words).not.toMatch(/[\n\r]/)
          expect(words.isWellFormed()).toBe(true)
        }
      }),
    )
    expect(beginning({ text: '# Title\n\nSome **bold** [words](https://x.example)', format: 'markdown' }, 80)).toBe(
      'Title Some bold words',
    )
  })
})

test('a document that skips heading levels gets an outline without gaps', async () => {
  const made = (await markdown('### deep\n\n# top\n\n###### deepest\n\n## two')).text
  expect([...made.matchAll(/<h(\d)>/g)].map(([, level]) => Number(level))).toEqual([2, 2, 3, 3])
})

test('a text of nothing but marks is not laid out, so that nobody waits for it', async () => {
  for (const mark of ['[', '![', '\\', '_a*', '|-|\n', 'a\n-\n', '[[a](b', '***a', '<']) {
    const made = (await markdown(mark.repeat(64_000 / mark.length))).text
    expect(made.startsWith('<p class="note">')).toBe(true)
  }
})

test('thousands of invisible characters take no more room than their number', () => {
  const made = html`<p>${'\u202e'.repeat(11_000)}</p>`.text
  expect(made).toBe('<p><span class="odd">U+202E</span><span class="odd">and 10999 more</span></p>')
})

test('lines of a preview hold all words that fit, and say when there are more', () => {
  expect(wrapped('one two three four', 9, 5)).toEqual(['one two', 'three', 'four'])
  expect(wrapped('aaaaaaaaaaaaaaaaaaaa', 8, 5)).toEqual(['aaaaaaaa', 'aaaaaaaa', 'aaaa'])
  expect(wrapped('one two three four five', 9, 2)).toEqual(['one two', 'three...'])
})

test('a preview is a PNG with all its rows, whatever it is asked to show', async () => {
  const id = 'f3c'.padEnd(64, '0')
  for (const text of ['', 'Grüße', '你好世界', '<svg onload=alert(1)>'.repeat(40), '\u202e\0'])
    for (const words of [{ text }, { headline: text, text }]) {
      const rows = rowsOf(await card({ author: id, name: '@ada', place: 'in lobby', ...words }))
      expect(rows.length).toBe(630 * (1 + 600))
      for (let row = 0; row < 630; row++) expect(rows[row * 601]).toBe(0)
    }
})

function rowsOf(png: Buffer): Buffer {
  const at = png.indexOf('IDAT') + 4
  return inflateSync(png.subarray(at, at + png.readUInt32BE(at - 8)))
}

test('a preview shows a whole headline, however long its words are, and Latin letters with their marks', async () => {
  const shown = (headline: string) => card({ name: '', place: '', headline, text: '' })
  for (const word of ['w', 'words', 'a-word-of-twenty-six-lette', 'm'.repeat(44), 'i'.repeat(120)]) {
    const headline = `${`${word} `.repeat(120)}`.slice(0, 119)
    // Its last letter changes the picture.
    expect(rowsOf(await shown(`${headline}x`)).equals(rowsOf(await shown(`${headline}y`)))).toBe(false)
  }
  for (const [plain, marked] of ['eé', 'EÉ', 'iî', 'cç', 'aą', 'oø', 'lł', 'dđ', 'sș', 'uű', 'aå'] as const)
    expect(rowsOf(await shown(plain!)).equals(rowsOf(await shown(marked!)))).toBe(false)
  expect(rowsOf(await shown('fu\u0308r \ufb01n')).equals(rowsOf(await shown('für fin')))).toBe(true)
})

test('words in letters that a preview cannot draw are all left out, and so are words after them', async () => {
  const shown = (headline: string, text = '') => card({ name: '@ada', place: 'in lobby', headline, text })
  const empty = rowsOf(await shown(''))
  for (const words of ['你好世界', 'Hello Мир', 'שלום', 'नमस्ते', 'a ế b', '5 € a day'])
    expect([words, rowsOf(await shown(words, 'what follows')).equals(empty)]).toEqual([words, true])
  expect(rowsOf(await shown('party \u{1f389}')).equals(rowsOf(await shown('party')))).toBe(true)
})
