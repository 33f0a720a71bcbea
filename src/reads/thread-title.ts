/** The title and excerpt of a thread in lists, from the text of its first event without Markdown syntax. */

import { excerptMax, titleMax } from '../../actors/threads/operations.ts'

/** Characters of a text considered for a title or an excerpt. */
const readMax = 4_096

export const removedTitle = '[removed]'

export type ThreadTitle = { readonly title: string; readonly excerpt?: string }

/** `text` is undefined if it is gone. */
export function titleOf({ text, format }: { readonly text?: string; readonly format?: string }): ThreadTitle {
  if (text === undefined) return { title: removedTitle }
  const beginning = text.slice(0, readMax)
  const lines = (format === 'markdown' ? withoutMarks(beginning) : beginning)
    .split(/[\n\r\u2028\u2029]/)
    .map((line) => line.trim())
    .filter((line) => line !== '')
    .map((line) => line.replace(/\s+/gu, ' '))
  const [first = '', ...others] = lines
  const { words: title, rest } = cutAtWord(first, titleMax)
  const { words: excerpt } = cutAtWord([rest, ...others].join(' ').trim(), excerptMax)
  return { title, ...(excerpt === '' ? {} : { excerpt }) }
}

/** Cuts after at most this many characters, at the end of a word if possible; also returns the rest. */
function cutAtWord(line: string, charactersMax: number): { readonly words: string; readonly rest: string } {
  if (line.length <= charactersMax) return { words: line, rest: '' }
  // A character takes at most two code units, so no more of the line needs to be examined.
  const characters = [...line.slice(0, 2 * charactersMax + 2)]
  if (characters.length <= charactersMax) return { words: line, rest: '' }
  const head = characters.slice(0, charactersMax - 1).join('')
  const isAtEnd = characters[charactersMax - 1] === ' '
  const space = isAtEnd ? head.length : head.lastIndexOf(' ')
  // One long word, or a text without spaces, is cut in the middle.
  const end = space < head.length / 2 ? head.length : space
  return { words: `${line.slice(0, end).trimEnd()}…`, rest: line.slice(end).trimStart() }
}

/**
 * A label has no bracket, and an address has none that opens one: so no character is examined for more than one link, whatever the text
 * contains.
 */
const link = /!?\[([^[\]\n]{0,500})\]\([^)[\n]{0,2000}\)/g

/** Its time is proportional to the text: lists call it for each of their threads. */
function withoutMarks(text: string): string {
  return (
    text
      .replace(/^[ \t]{0,3}(`{3,}|~{3,})[^\n]*$/gm, '')
      .replace(/^[ \t]{0,3}([-*_=][ \t]*){3,}$/gm, '')
      .replace(link, '$1')
      // Now those whose label was a picture.
      .replace(link, '$1')
      .replace(/^[ \t]{0,3}(?:(?:#{1,6}|>|[-*+]|\d{1,9}[.)])[ \t]+)+/gm, '')
      .replace(/\\([!-/:-@[-`{-~])/g, '$1')
      .replace(/(?<![\p{L}\p{N}])[*_`~]{1,3}(?=\S)|(?<=\S)[*_`~]{1,3}(?![\p{L}\p{N}])/gu, '')
  )
}
