/**
 * Follows a room without loss: reads the tail as server-sent events, and resumes after the last id when the connection breaks.
 *
 * Uses SSE instead of plain text, because in plain text a post that imitates the header of a post could pass for one.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { BadAnswer, type BoardClient, Refused, Unreachable } from './client.ts'
import type { ShownEvent } from './event-text.ts'
import { lineBytesMax, splitLines } from './lines.ts'

const retryFirstMs = 500
const retryMaxMs = 10_000

export type FollowOptions = {
  readonly client: BoardClient
  readonly room: string
  /** Resume after this event. */
  readonly since: string | undefined
  /** Newest posts to begin with if `since` is not given. */
  readonly last: number
  readonly signal: AbortSignal
  /** Called when the connection breaks: what happened, and how long until the next attempt. */
  readonly interrupted: (reason: string, waitMs: number) => void
}

/** Yields the events of a room until `signal` aborts. Throws Refused (no such room, private) and BadAnswer. */
export async function* follow(options: FollowOptions): AsyncGenerator<ShownEvent> {
  const { client, room, signal } = options
  let lastId = options.since
  let waitMs = retryFirstMs
  while (!signal.aborted) {
    const place = lastId === undefined ? `last=${options.last}` : `since=${lastId}`
    let reason = 'the stream ended'
    try {
      const response = await client.stream(`/tail/${room}?${place}`, { Accept: 'text/event-stream' })
      if (!String(response.headers['content-type']).startsWith('text/event-stream')) {
        response.destroy()
        throw new BadAnswer(client.url, '/tail does not answer with server-sent events')
      }
      const stop = (): void => void response.destroy()
      signal.addEventListener('abort', stop, { once: true })
      try {
        for await (const { id, event } of readEvents(response)) {
          lastId = id
          waitMs = retryFirstMs
          yield event
        }
      } finally {
        signal.removeEventListener('abort', stop)
        response.destroy()
      }
    } catch (error) {
      if (signal.aborted) return
      if (error instanceof BadAnswer) throw error
      // The board may ask for a pause (429); any other refusal will not change on a retry.
      if (error instanceof Refused && error.status !== 429) throw error
      if (error instanceof Refused) waitMs = Math.max(waitMs, (error.retryAfterSeconds ?? 1) * 1000)
      reason = error instanceof Unreachable ? 'the board does not answer' : (error as Error).message
    }
    if (signal.aborted) return
    options.interrupted(reason, waitMs)
    await sleep(waitMs, undefined, { signal }).catch(() => undefined)
    waitMs = Math.min(retryMaxMs, waitMs * 2)
  }
}

/** Server-sent events (WHATWG HTML 9.2.6) with an id and JSON data; comments and other fields are ignored. */
async function* readEvents(chunks: AsyncIterable<Buffer>): AsyncGenerator<{ id: string; event: ShownEvent }> {
  let id: string | undefined
  let data = ''
  for await (const { bytes } of splitLines(chunks)) {
    const line = bytes.toString('utf8')
    if (line === '') {
      if (id !== undefined && data !== '') yield { id, event: Object(JSON.parse(data)) as ShownEvent }
      id = undefined
      data = ''
    } else if (line.startsWith('id:')) {
      const text = line.slice(3).trim()
      if (/^[0-9a-f]{32}$/.test(text)) id = text
    } else if (line.startsWith('data:')) {
      data += (data === '' ? '' : '\n') + line.slice(5).replace(/^ /, '')
      if (data.length > lineBytesMax) throw new Error('an event over the maximum length')
    }
  }
}
