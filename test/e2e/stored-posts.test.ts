/**
 * Answers assembled from stored bytes equal, byte for byte, the view of the decoded record: for every kind of post that a board shows, and
 * for those that only the view can show.
 */
import { beforeAll, expect, test, vi } from 'vitest'
import { exportLine } from '../../src/export/lines.ts'
import { eventJson } from '../../src/reads/event-json.ts'
import { listedEvent, plainPostAt } from '../../src/reads/listed-events.ts'
import { type ReadContext, view } from '../../src/reads/read.ts'
import { titleOf } from '../../src/reads/thread-title.ts'
import { blobOf, putFields } from '../support/blobs.ts'
import { boardDirectory, startBoard } from '../support/board-process.ts'
import { type Answer, Client, type Fields, now, person } from '../support/client.ts'
import { createDelegation } from '../support/delegations.ts'
import { readBoard } from '../support/read-board.ts'

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 })

const [ada, ben, tool] = [person('ada'), person('ben'), person('tool')]
const texts = [
  'plain',
  'quotes " and \\ and \\" and a line\nand a tab\t and } , {"text":"no"}',
  'naïve café, 漢字, emoji 🎉, and right to left: שלום',
  'separators \u2028 and \u2029, escaped as they are signed: \\u2028',
  `bell \u0007 and ${'long '.repeat(200)}`,
]
const data = (more: object) => JSON.stringify({ schema: 1, ...more })

let context: ReadContext
/** Ids of posts that are shown as they were written, and of all others. */
const plain: string[] = []
const others: string[] = []

beforeAll(async () => {
  const directory = boardDirectory()
  const board = await startBoard({ directory, env: { SHARDS: '1' } })
  const client = await Client.of(board)
  const post = async (fields: Omit<Fields, 'operation'>, signer = ada): Promise<string> => {
    const { status, text, data: answer } = await client.post(signer, { room: 'kinds', ...fields })
    expect([status, text]).toEqual([200, expect.any(String)])
    return answer.receipt!.event_id
  }
  const act = async (signer: typeof ada, fields: Fields): Promise<Answer> => {
    const answer = await client.command(signer, fields)
    expect([answer.status, answer.text]).toEqual([200, expect.any(String)])
    return answer
  }
  await act(ben, { operation: 'identity.register', handle: 'ben' })
  for (const text of texts) plain.push(await post({ text }), await post({ text, data: data({ format: 'markdown' }) }))
  const root = await post({ text: 'a root on a page', page: 'side', kind: 'question' })
  plain.push(root, await post({ text: 'a reply', reply_to: root }, ben), await post({ text: 'will end', ttl: 86_400 }))
  plain.push(await post({ text: 'to an id', to: ben.id }), await post({ text: 'to a handle', to: '@ben' }))
  await act(ben, { operation: 'vote', event_id: root, data: data({ value: 1 }) })
  const source = { system: 'forum', id: 'a "1"', author: 'Zoë', at: 1_600_000_000 }
  plain.push(await post({ text: 'from elsewhere', reply_to: root, to: '@ben', data: data({ source }) }))
  plain.push(await post({ text: 'a note from elsewhere', data: data({ format: 'markdown', source }) }))
  const file = blobOf(await act(ada, { ...putFields(Buffer.from('file')), room: 'kinds', media_type: 'text/plain' }))
  others.push(await post({ text: 'with a file', attachments: [file.id] }))
  await createDelegation(client, ada, tool)
  others.push(await post({ text: 'by a delegate' }, tool))
  const [edited, hidden, redacted, ended] = [
    await post({ text: 'first' }),
    await post({ text: 'to be redacted' }),
    await post({ text: 'to be redacted, too' }),
    await post({ text: 'ends at once', ttl: 60 }),
  ]
  await post({ text: 'second', data: data({ supersedes: edited }) })
  for (const event_id of [hidden, redacted])
    await act(ada, { operation: 'event.redact', event_id, reason: 'a mistake' })
  others.push(edited, hidden, redacted, ended)
  client.close()
  await board.stop()
  context = readBoard(directory, 1, now() + 3_600)
})

const slotOf = (id: string) => context.board.events.find(Buffer.from(id, 'hex'))
const bytesOf = (text: string) => Buffer.from(text, 'latin1').toString()

test('only posts that are shown as they were written are assembled from stored bytes', () => {
  expect(plain.filter((id) => plainPostAt(context, slotOf(id)) === undefined)).toEqual([])
  expect(others.filter((id) => plainPostAt(context, slotOf(id)) !== undefined)).toEqual([])
})

test('every event is the JSON of its view, with and without its payload', () => {
  for (let slot = 0; slot < context.board.events.count; slot++) {
    const { json, room, ends, title } = listedEvent(context, slot)
    const shown = view(context, slot, false)
    expect(bytesOf(json)).toBe(JSON.stringify(shown))
    expect([room, ends, title()]).toEqual([shown.room, shown.hidden ? 0 : (shown.expires_at ?? 0), titleOf(shown)])
    const found = plainPostAt(context, slot)
    if (found !== undefined)
      expect(bytesOf(eventJson(context.state, found, true))).toBe(JSON.stringify(view(context, slot, true)))
  }
})

test('a line of an export holds the fields of the view, its log with its origin, and the hash of the command', () => {
  const { origin } = context.state.book.newest
  for (const id of plain) {
    const slot = slotOf(id)
    const { log, ...shown } = view(context, slot, true)
    const line = JSON.parse(bytesOf(exportLine(context, slot, Number.POSITIVE_INFINITY)))
    const { actual_page: page = shown.page, command_sha256: sha, ...rest } = line
    expect({ ...rest, page }).toEqual({ ...shown, page, log: { ...log, origin }, archive_eligible: true })
    expect(sha.slice(0, 32)).toBe(id)
  }
})
