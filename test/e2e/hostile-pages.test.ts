/** Pages with the longest and most expensive texts that a board accepts: bounded, readable, cached, and clear about what is left out. */
import { HtmlValidate } from 'html-validate'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { boardDirectory, startBoard } from '../support/board-process.ts'
import { Client, type Data, person } from '../support/client.ts'
import { wideTable, words } from '../support/worst-case-board.ts'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 })

const ada = person('ada')
const markdown = '{"schema":1,"format":"markdown"}'
/** Including everything around the texts; a larger page could not be cached. */
const pageBytesMax = 1_500_000

let client: Client
beforeAll(async () => {
  client = await Client.of(await startBoard({ directory: boardDirectory() }))
})
afterAll(() => client?.close())

async function say(fields: Readonly<Record<string, string>>): Promise<string> {
  const { status, text, data } = await client.post(ada, fields)
  expect([status, status === 200 ? '' : text]).toEqual([200, ''])
  return data.event_id!
}

/** Requests a page twice: from the second request on it is served from the cache. */
async function page(path: string): Promise<string> {
  const [once, first, again] = [await client.get(path), await client.get(path), await client.get(path)]
  expect(once.headers.etag).toBe(first.headers.etag)
  expect(first.status).toBe(200)
  expect(Buffer.byteLength(first.text)).toBeLessThan(pageBytesMax)
  expect(again.text).toBe(first.text)
  return first.text
}

/** The parts that a page lacks, because pages are too long to print. */
const missing = (shown: string, ...parts: readonly string[]) => parts.filter((part) => !shown.includes(part))
const cellsOf = (text: string) => text.match(/<t[hd][ >]/g)?.length ?? 0

test('55 replies with tables of a thousand columns are shown as written, as far as the page has room', async () => {
  const root = await say({ text: 'root' })
  await Promise.all(
    Array.from({ length: 55 }, (_, n) =>
      say({ text: `reply ${n}\n\n${wideTable(1_000, 66)}`, data: markdown, reply_to: root }),
    ),
  )
  const shown = await page(`/e/${root}`)
  expect(cellsOf(shown)).toBe(0)
  expect(missing(shown, ...Array.from({ length: 55 }, (_, n) => `reply ${n}`))).toEqual([])
  expect(missing(shown, 'this table has too many cells', 'The page has reached its size limit.')).toEqual([])
  expect(shown.match(/Shown in part/g)).toHaveLength(55)
})

test('a post and a document with fourteen tables are shown with as many as a text may have', async () => {
  const text = Array.from({ length: 14 }, () => wideTable(200, 204)).join('\n')
  const post = await say({ text, data: markdown })
  const { data } = await client.command(ada, { operation: 'docs.create', text, data: '{"schema":1,"title":"Tables"}' })
  const { doc } = data as Data & { doc: { id: string } }
  for (const path of [`/e/${post}`, `/d/${doc.id}`]) {
    const shown = await page(path)
    expect(cellsOf(shown)).toBeLessThanOrEqual(4_000)
    expect(missing(shown, 'Shown in part')).toEqual([])
  }
})

test('a thread that exceeds a page shows the beginning of each reply, and links to the full text', async () => {
  const root = await say({ room: 'odd', text: 'root' })
  const ids = await Promise.all(
    Array.from({ length: 40 }, (_, n) => say({ text: `reply ${n} ${'a\u200b'.repeat(2_000)}`, reply_to: root })),
  )
  const shown = await page(`/e/${root}`)
  expect(missing(shown, 'The page has reached its size limit.')).toEqual([])
  expect(missing(shown, ...ids.flatMap((id, n) => [`reply ${n} `, `/e/${id}`]))).toEqual([])
  const last = await page(`/e/${ids.at(-1)}`)
  expect(missing(last, 'reply 39 ')).toEqual([])
})

test('pages that show texts in part are valid HTML and let nothing in', async () => {
  const text = `<script>alert(1)</script><b onclick="x">${'\u200b<'.repeat(8_100)}`
  const post = await say({ room: 'escape', text })
  const shown = await page(`/e/${post}`)
  expect(missing(shown, 'Shown in part. The text is longer than a page can hold.', `/api/events/${post}`)).toEqual([])
  expect(/<script>alert|<b /.test(shown)).toBe(false)
  const validator = new HtmlValidate({ extends: ['html-validate:recommended'], rules: { 'long-title': 'off' } })
  const { results } = await validator.validateString(shown)
  expect(results.flatMap(({ messages }) => messages.map(({ ruleId, message }) => `${ruleId}: ${message}`))).toEqual([])
})

test('the history of a post is split into pages, each version shown once and compared with the previous one', async () => {
  const texts = Array.from({ length: 31 }, (_, n) => `version-${n + 1} stands here and so do other words`)
  const id = await say({ room: 'versions', text: texts[0]! })
  for (const text of texts.slice(1)) await say({ room: 'versions', text, data: `{"schema":1,"supersedes":"${id}"}` })
  const numbers: number[] = []
  let path: string | undefined = `/e/${id}/history`
  let pages = 0
  while (path !== undefined) {
    const shown: string = await page(path)
    for (const [, number] of shown.matchAll(/Version (\d+) /g)) {
      numbers.push(Number(number))
      if (number !== '1') expect(missing(shown, `<del>${Number(number) - 1}</del><ins>${number}</ins>`)).toEqual([])
    }
    path = /<a rel="next" href="([^"]+)"/.exec(shown)?.[1]?.replaceAll('&#38;', '&')
    pages++
  }
  expect(numbers).toEqual(Array.from({ length: 31 }, (_, n) => n + 1))
  expect(pages).toBe(4)
})

test('31 versions without a word in common make pages of bounded size', async () => {
  const id = await say({ room: 'random', text: words(1_600, 0).replaceAll(' ', '\n') })
  for (let n = 1; n < 31; n++)
    await say({
      room: 'random',
      text: words(1_600, n).replaceAll(' ', '\n'),
      data: `{"schema":1,"supersedes":"${id}"}`,
    })
  expect(missing(await page(`/e/${id}/history`), 'The texts differ so much that only the new one is shown.')).toEqual(
    [],
  )
})
