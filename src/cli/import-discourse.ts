/**
 * Topics and posts of Discourse, in the JSON of its API and its export: a topic (`/t/{id}.json`), a list of posts (`/posts.json`), an array
 * of either, or one of either per line.
 *
 * `raw`, which the API includes with `?include_raw=1`, is Markdown and stays Markdown; if there is only `cooked`, its HTML becomes plain
 * text. Private messages, whispers, and hidden or deleted posts are not imported.
 */
import { timeOf } from './corpus.ts'
import {
  fieldsOf,
  listIn,
  messageOf,
  type Place,
  type SourceEntry,
  skipped,
  textIn,
  textOfHtml,
  tooMuchMarkup,
  unreadable,
} from './message-source.ts'

export function isDiscourse(value: unknown): boolean {
  const { post_stream: stream, latest_posts: latest, post_number: number } = fieldsOf(value)
  return stream !== undefined || latest !== undefined || number !== undefined
}

type Topic = Readonly<Record<string, unknown>>

/** Every post of a topic or list. */
export async function* discourseEntries(value: unknown, where: string, place: Place): AsyncGenerator<SourceEntry> {
  const given = fieldsOf(value)
  if (given.post_number !== undefined) return yield await postEntry(given, given, where, place)
  const stream = fieldsOf(given.post_stream)
  const posts = listIn(given.post_stream === undefined ? given.latest_posts : stream.posts)
  if (!isDiscourse(value)) return yield unreadable(where, 'neither a topic nor a post of Discourse')
  if (given.archetype === 'private_message')
    return yield skipped(where, 'posts of private messages were skipped', posts.length)
  for (const [n, post] of posts.entries())
    yield await postEntry(fieldsOf(post), given, `${where}, post ${n + 1}`, place)
  const missing = listIn(stream.stream).length - posts.length
  if (missing > 0) yield skipped(where, 'posts are not in the file, though their topic lists them', missing)
}

/** Posts that are neither whispers, which only staff can read, nor records of moderation. */
const regularTypes: ReadonlySet<unknown> = new Set([undefined, 1, 2])

async function postEntry(post: Topic, topic: Topic, where: string, { room, system }: Place): Promise<SourceEntry> {
  const { post_number: number, username, created_at: at, reply_to_post_number: answered, raw, cooked } = post
  if (post.hidden === true || post.user_deleted === true || textIn(post.deleted_at) !== undefined)
    return skipped(where, 'hidden and deleted posts were skipped')
  if (post.topic_archetype === 'private_message' || post.archetype === 'private_message')
    return skipped(where, 'posts of private messages were skipped')
  if (!regularTypes.has(post.post_type)) return skipped(where, 'whispers and small actions were skipped')
  const topicId = post.topic_id ?? topic.id
  if (typeof topicId !== 'number' || typeof number !== 'number')
    return unreadable(where, '"topic_id" and "post_number" must be numbers')
  if (typeof username !== 'string' || username === '') return unreadable(where, '"username" must name the author')
  const parents = number === 1 ? [] : [typeof answered === 'number' ? answered : 1, 1]
  const isRaw = typeof raw === 'string'
  const text = isRaw ? raw : await textOfHtml(textIn(cooked) ?? '')
  if (text === undefined) return unreadable(where, tooMuchMarkup)
  return {
    where,
    line: messageOf({
      system,
      id: `${topicId}/${number}`,
      room,
      author: username,
      authorName: username,
      parents: [...new Set(parents)].map((each) => `${topicId}/${each}`),
      at: timeOf(at),
      title: textIn(post.topic_title) ?? textIn(topic.title),
      text,
      format: isRaw ? 'markdown' : undefined,
    }),
  }
}
