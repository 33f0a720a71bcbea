import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { parseCorpusLine } from '../../src/cli/corpus.ts'
import { boardDirectory, startBoard } from '../support/board-process.ts'
import { Client, type EventJson, person } from '../support/client.ts'
import { corpus, corpusLines } from '../support/corpus.ts'
import { fetchVerifiedExport, logKeyOf } from '../support/log-checks.ts'
import { patience } from '../support/patience.ts'

vi.setConfig({ testTimeout: 900_000, hookTimeout: 900_000 })

/** Characters that control terminals, hide or reorder text, or split lines. */
const dangerous = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u
const composed = [
  '<script>alert(1)</script>',
  '"><img src=x onerror=alert(1)>',
  '\u001b[2J\u001b]0;title\u0007\u009b31m',
  '\u202eevil\u202c \u2066x\u2069 \u200f \u061c',
  '\ufeffBOM first, \u200bzero width, \u00ad soft',
  'a\rb\nc\r\nd\te\u000bf\u000cg\u0085h\u2028i\u2029j',
  '[0123456789abcdef0123456789abcdef] lobby/main @broadside 2026-01-01T00:00:00Z\nforged block\n\n',
  '# you are reading more slowly than this room is posting: closed\n\n\n\u200d[0123456789abcdef0123456789abcdef] lobby/main @x\n',
  'id: x\ndata: {}\n\nevent: y\n\n: comment',
  '{"type":"end","count":1,"checkpoint":"x"}\n',
  '👩‍👩‍👧‍👦 🏳️‍🌈 é vs e\u0301 \u{e0001}\u{e0041} \uffff \ufffe \u{10ffff}',
  `z${'\u0301'.repeat(3_000)}`,
  '\u0001\u0002\u001f\u007f',
]

/** About two thousand texts: every one beyond the BMP or with unusual characters, and some of the others. */
function sample(): string[] {
  const found: string[] = []
  for (const [number, line] of corpusLines().entries()) {
    const parsed = parseCorpusLine(Buffer.from(line))
    if (!parsed.ok || parsed.message === undefined || parsed.message.textBytes > 32_768) continue
    const { text } = parsed.message
    const isOdd = /[\u{10000}-\u{10ffff}]/u.test(text) || dangerous.test(text.replaceAll('\n', ''))
    if (isOdd || number % 120 === 0) found.push(text)
  }
  return found
}

describe.each([
  ['composed to harm', () => composed, false],
  [`of the corpus${corpus.note}`, sample, corpus.isAbsent],
] as const)('texts %s', (_name, texts, isSkipped) => {
  const events: EventJson[] = []
  let client: Client
  let address = ''
  /** The live text of a follower that was there from the start. */
  let tail = ''
  let sse = ''
  const stop = new AbortController()

  beforeAll(async () => {
    if (isSkipped) return
    const board = await startBoard({ directory: boardDirectory() })
    client = await Client.of(board)
    address = board.address
    const root = (await client.post(person('root'), { room: 'texts', text: 'root' })).data.event!
    const follow = async (headers: Record<string, string>, take: (text: string) => void) => {
      const response = await fetch(`${address}/tail/texts?last=0`, { headers, signal: stop.signal })
      const read = async () => {
        const decoder = new TextDecoder()
        for await (const chunk of response.body!) take(decoder.decode(chunk as Uint8Array, { stream: true }))
      }
      read().catch(() => {})
    }
    await follow({}, (text) => {
      tail += text
    })
    await follow({ accept: 'text/event-stream' }, (text) => {
      sse += text
    })
    const all = texts()
    let next = 0
    const worker = async () => {
      while (next < all.length) {
        const text = all[next++]!
        const {
          status,
          data,
          text: answer,
        } = await client.post(person(`p${next % 7}`), { text, reply_to: root.event_id, room: 'texts' })
        expect(status, answer).toBe(200)
        expect(data.event!.text).toBe(text)
        events.push(data.event!)
      }
    }
    await Promise.all(Array.from({ length: 16 }, worker))
  })
  afterAll(() => {
    stop.abort()
    client?.close()
  })

  test.skipIf(isSkipped)('are returned byte for byte from event, thread, list and export', async () => {
    const byId = new Map(events.map((event) => [event.event_id, event.text]))
    const seen = async (path: string) => {
      let cursor = ''
      let count = 0
      do {
        const { data } = await client.get(`${path}limit=200${cursor === '' ? '' : `&cursor=${cursor}`}`)
        for (const event of data.events!) {
          if (byId.has(event.event_id)) count += 1
          if (byId.has(event.event_id) && event.text !== byId.get(event.event_id))
            throw new Error(`${path} changed ${event.event_id}`)
        }
        cursor = data.next_cursor ?? ''
      } while (cursor !== '')
      expect(count).toBe(events.length)
    }
    await seen(`/api/thread/${events[0]!.event_id}?`)
    await seen('/api/events?room=texts&')
    for (const { event_id, text } of events.filter((_, n) => n % 10 === 0)) {
      const { event } = (await client.get(`/api/events/${event_id}`)).data
      expect(event?.text).toBe(text)
      expect((JSON.parse(event!.signed_payload!) as { command: { text: string } }).command.text).toBe(text)
    }
    const { events: exported } = await fetchVerifiedExport(client, await logKeyOf(client))
    for (const { event_id, text } of exported) if (byId.has(event_id)) expect(text).toBe(byId.get(event_id))
    expect(exported).toHaveLength(events.length + 1)
  })

  test.skipIf(isSkipped)(
    'are inert in the text tail: no terminal control character, no line that looks like a post',
    async () => {
      await vi.waitUntil(() => events.every(({ event_id }) => tail.includes(`[${event_id}] `)), patience)
      const shown = tail.replaceAll('\u200d', '').replace(/[\n\t]/g, '')
      const [bad] = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/u.exec(shown) ?? []
      expect(bad?.codePointAt(0)?.toString(16)).toBeUndefined()
      // Whatever looks like a head is one, whatever looks like a word of the board is its first line, and blocks end where they should.
      const ids = new Set(events.map(({ event_id }) => event_id))
      const [first, ...lines] = tail.split('\n')
      expect(first).toMatch(/^# live tail of room texts/)
      expect(lines.filter((line) => line.startsWith('#'))).toEqual([])
      const strangers = (all: readonly string[]) =>
        all.filter((line) => line.startsWith('[') && !ids.has(line.slice(1, 33)))
      // The root, which the texts reply to.
      expect(strangers(lines).length).toBeLessThanOrEqual(1)
      const blocks = tail.split(/\n\n+/).filter((block) => block.startsWith('['))
      expect(blocks.length).toBeGreaterThanOrEqual(ids.size)
      for (const event of events) {
        const block = blocks.find((each) => each.startsWith(`[${event.event_id}]`))!
        expect(block.split('\n')).toHaveLength(1 + event.text!.split('\n').length)
      }
      expect(strangers((await lineTail(address, events.length)).split('\n')).length).toBeLessThanOrEqual(1)
    },
  )

  test.skipIf(isSkipped)('arrive complete through server-sent events, whatever line ends they contain', async () => {
    const whole = () => [...sse.matchAll(/^id: ([0-9a-f]{32})\ndata: ([^\n]*)\n\n/gm)]
    await vi.waitUntil(() => whole().length >= events.length, patience)
    const heard = new Map(whole().map(([, id, json]) => [id!, (JSON.parse(json!) as EventJson).text]))
    for (const { event_id, text } of events) expect(heard.get(event_id)).toBe(text)
    expect(sse).not.toContain('\r')
  })
})

/** The newest posts, one a line: as many as there are, at most 200. */
async function lineTail(address: string, count: number): Promise<string> {
  const stop = new AbortController()
  const response = await fetch(`${address}/tail/texts?last=200&format=line`, { signal: stop.signal })
  let text = ''
  const decoder = new TextDecoder()
  for await (const chunk of response.body!) {
    text += decoder.decode(chunk as Uint8Array, { stream: true })
    if (text.split('\n').filter((line) => line.startsWith('[')).length >= Math.min(count, 200)) break
  }
  stop.abort()
  return text
}
