/** Reads a corpus of JSON lines, or the export of a board. */
import { parseCorpusLine } from './corpus.ts'
import { type LineSource, lineBytesMax } from './lines.ts'
import { type MessageSource, unreadable } from './message-source.ts'

export function jsonLinesSource(file: LineSource, system?: string): MessageSource {
  return {
    async *entries() {
      for await (const { number, bytes, isCut } of file.lines()) {
        if (bytes.length === 0) continue
        const where = `line ${number}`
        if (isCut) yield unreadable(where, `longer than ${lineBytesMax} bytes`)
        else yield { where, line: parseCorpusLine(bytes, system) }
      }
    },
    share: file.share,
    isRepeatable: file.fileBytes > 0,
    entriesName: 'lines',
  }
}
