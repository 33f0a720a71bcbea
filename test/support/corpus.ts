/** Real messages of a board. The data is stored beside the project and is not part of it. */
import { readFileSync } from 'node:fs'
import { gunzipSync } from 'node:zlib'
import { realData } from './real-data.ts'

export const corpus = realData('board/board-corpus.jsonl.gz')

/** All rows, as JSON. */
export function corpusLines(): string[] {
  return gunzipSync(readFileSync(corpus.path)).toString('utf8').trimEnd().split('\n')
}

/** Texts of every nth row. */
export function corpusTexts(every: number): string[] {
  return corpusLines()
    .filter((_, n) => n % every === 0)
    .map((line) => (JSON.parse(line) as { text: string }).text)
    .filter((text) => text !== '' && !text.includes('\0') && text.isWellFormed())
}
