/**
 * Items of Hacker News in the public JSON form of its API: one item per line, or an array of them.
 *
 * `{"id","type","by","time","text","parent","title","url","deleted","dead","poll"}`. Texts are HTML and become plain text.
 */
import { timeOf } from './corpus.ts'
import {
  fieldsOf,
  messageOf,
  type Place,
  type SourceEntry,
  skipped,
  textIn,
  textOfHtml,
  tooMuchMarkup,
  unreadable,
} from './message-source.ts'

const types: ReadonlySet<unknown> = new Set(['story', 'comment', 'job', 'poll', 'pollopt'])

export function isHackerNewsItem(value: unknown): boolean {
  const { id, type } = fieldsOf(value)
  return typeof id === 'number' && types.has(type)
}

export async function hackerNewsEntry(value: unknown, where: string, { room, system }: Place): Promise<SourceEntry> {
  // The API returns null for an item that does not exist.
  if (value === null) return skipped(where, 'items that the API did not have were skipped')
  const { id, by, time, text, parent, poll, title, url, deleted, dead } = fieldsOf(value)
  if (deleted === true || dead === true) return skipped(where, 'deleted and dead items were skipped')
  if (!isHackerNewsItem(value)) return unreadable(where, '"id" must be a number and "type" one that the API has')
  if (typeof by !== 'string' || by === '') return unreadable(where, '"by" must name the author')
  const above = typeof parent === 'number' ? parent : poll
  const words = await textOfHtml(typeof text === 'string' ? text : '')
  if (words === undefined) return unreadable(where, tooMuchMarkup)
  return {
    where,
    line: messageOf({
      system,
      id: String(id),
      room,
      author: by,
      authorName: by,
      parents: typeof above === 'number' ? [String(above)] : [],
      at: timeOf(time),
      title: textIn(title),
      text: [textIn(url) ?? '', words].filter((each) => each !== '').join('\n\n'),
    }),
  }
}
