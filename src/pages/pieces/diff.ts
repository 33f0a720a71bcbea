/**
 * What changed between two texts, word by word where lines are alike. Bounded: who compares pages of strangers must not wait for
 * their worst texts, so beyond a number of changes the new text is shown whole.
 */
import { type Html, html } from '../html.ts'

/** Changed words or lines; the time goes with its square, at the bound some 10 ms. */
const changesMax = 400
/** Characters of unchanged text kept at each side of a change. */
const contextChars = 160

type Change = { readonly value: string; readonly added?: boolean; readonly removed?: boolean }

export async function diffHtml(before: string, after: string): Promise<Html> {
  const { diffLines, diffWordsWithSpace } = await import('diff')
  const options = { maxEditLength: changesMax }
  const size = before.length + after.length
  const changes: readonly Change[] | undefined =
    (size < 20_000 ? diffWordsWithSpace(before, after, options) : undefined) ?? diffLines(before, after, options)
  if (changes === undefined)
    return html`<p class="quiet">So much is different that only the new text is shown.</p><div class="diff">${after}</div>`
  if (changes.every(({ added, removed }) => !added && !removed)) return html`<p class="quiet">The text is the same.</p>`
  return html`<div class="diff">${changes.map((change, n) => partHtml(change, n === 0, n === changes.length - 1))}</div>`
}

function partHtml({ value, added, removed }: Change, isFirst: boolean, isLast: boolean): Html {
  if (added) return html`<ins>${value}</ins>`
  if (removed) return html`<del>${value}</del>`
  if (value.length <= 3 * contextChars) return html`${value}`
  const head = isFirst ? '' : cutAfter(value.slice(0, contextChars))
  const tail = isLast ? '' : cutBefore(value.slice(-contextChars))
  return html`${head}<span class="skipped"> … unchanged … </span>${tail}`
}

/** No half of a character is left over. */
function cutAfter(text: string): string {
  return text.replace(/[\ud800-\udbff]$/, '')
}
function cutBefore(text: string): string {
  return text.replace(/^[\udc00-\udfff]/, '')
}
