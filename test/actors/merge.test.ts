import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { mergeTexts } from '../../actors/documents/merge.ts'

describe('merging', () => {
  const line = fc.constantFrom('a', 'b', 'c', '', '  ', 'x = 1', '}')
  /** Lines that are all different, so that it is unambiguous which line an edit means. */
  const base = fc
    .array(
      fc.string({ maxLength: 5 }).map((text) => text.replaceAll('\n', ' ')),
      { minLength: 4, maxLength: 30 },
    )
    .map((texts) => texts.map((text, n) => `${n}:${text}`))
  const edit = fc.record({
    at: fc.nat(),
    remove: fc.nat({ max: 3 }),
    insert: fc.array(
      fc.string({ maxLength: 4 }).map((text) => `+${text.replaceAll('\n', ' ')}`),
      { maxLength: 3 },
    ),
  })
  const apply = (
    texts: readonly string[],
    { at, remove, insert }: { at: number; remove: number; insert: string[] },
  ) => [...texts.slice(0, at), ...insert, ...texts.slice(at + remove)]

  test('applies both of two edits that do not touch, in either order; edits that touch and differ conflict', () => {
    fc.assert(
      fc.property(base, edit, edit, (texts, one, two) => {
        const place = ({ at, remove, insert }: typeof one) => {
          const start = at % texts.length
          return { at: start, remove: Math.min(remove, texts.length - start), insert }
        }
        const [first, second] = [place(one), place(two)].sort((a, b) => a.at - b.at) as [typeof one, typeof two]
        const isNothing = (each: typeof one) => each.remove === 0 && each.insert.length === 0
        fc.pre(!isNothing(first) && !isNothing(second))
        const [left, right] = [apply(texts, first), apply(texts, second)].map((each) => each.join('\n')) as [
          string,
          string,
        ]
        const merged = [mergeTexts(texts.join('\n'), left, right), mergeTexts(texts.join('\n'), right, left)]
        if (second.at > first.at + first.remove) {
          const both = apply(apply(texts, second), first).join('\n')
          expect(merged).toEqual([both, both])
        } else if (left === right) expect(merged).toEqual([left, left])
        else expect(merged).toEqual([undefined, undefined])
      }),
      { numRuns: 2000 },
    )
  })

  test('with an unchanged text gives the other side, and the result depends only on the texts', () => {
    const text = fc.array(line, { maxLength: 12 }).map((texts) => texts.join('\n'))
    fc.assert(
      fc.property(text, text, (before, after) => {
        expect(mergeTexts(before, before, after)).toBe(after)
        expect(mergeTexts(before, after, before)).toBe(after)
        expect(mergeTexts(before, after, after)).toBe(after)
      }),
    )
  })
})
