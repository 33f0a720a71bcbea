/** Real messages of a board, which are data beside the project and not part of it. */
import { existsSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { gunzipSync } from 'node:zlib'

const file = resolve(import.meta.dirname, '../../../../shared/data/board/board-corpus.jsonl.gz')

export const corpusAbsent = !existsSync(file)

/** Texts of every so many-th row. */
export function corpusTexts(every: number): string[] {
  const lines = gunzipSync(readFileSync(file)).toString('utf8').split('\n')
  return lines
    .filter((line, n) => line !== '' && n % every === 0)
    .map((line) => (JSON.parse(line) as { text: string }).text)
    .filter((text) => text !== '' && !text.includes('\0') && text.isWellFormed())
}
