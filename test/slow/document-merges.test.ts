/** One document and many writers: merges, conflicts, races. Nothing that was accepted is lost. */
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { mergeTexts } from '../../actors/documents/merge.ts'
import { summaryOf } from '../support/answers.ts'
import { sha256 } from '../support/blobs.ts'
import { boardDirectory, startBoard } from '../support/board-process.ts'
import { Client, person } from '../support/client.ts'
import { docOf, documentsOf, signedTextOf, writeFields } from '../support/documents.ts'

vi.setConfig({ testTimeout: 900_000, hookTimeout: 900_000 })

const [ada, ben, eve] = [person('doc ada'), person('doc ben'), person('doc eve')]
let client: Client
const { create, write, readBy, historyBy } = documentsOf(() => client, ada)

beforeAll(async () => {
  client = await Client.of(await startBoard({ directory: boardDirectory(), env: { SHARDS: '2' } }))
  await client.command(ada, { operation: 'room.create', room: 'hall' })
  await join(ben)
})
afterAll(() => client.close())

const join = (who: typeof ada) => client.command(who, { operation: 'room.join', room: 'hall' })
const lines = Array.from({ length: 40 }, (_, n) => `line ${n}`)
const withLine = (n: number, text: string, from = lines) => from.map((line, at) => (at === n ? text : line)).join('\n')

describe('many writers', () => {
  test('edits that do not touch are merged: a read returns the merged text, the version keeps what was signed', async () => {
    const doc = await create(lines.join('\n'), { room: 'hall' })
    await write(doc.id, 1, withLine(3, 'three by ada'))
    const edited = withLine(30, 'thirty by ben')
    const answer = await write(doc.id, 1, edited, ben)
    const merged = withLine(30, 'thirty by ben', withLine(3, 'three by ada').split('\n'))
    const how = {
      version_id: answer.data.receipt!.event_id,
      signed_text_sha256: sha256(edited),
      merged: true,
      base_version: 1,
      onto_version: 2,
    }
    expect(docOf(answer)).toMatchObject({ version: 3, text: merged, sha256: sha256(merged), merged: how })
    const read = docOf(await readBy(undefined, doc.id))
    expect(read).toMatchObject({ version: 3, text: merged, merged: how, author: { id: ben.id } })
    expect(signedTextOf(read)).toBe(edited)
    expect((await historyBy(eve, doc.id))[0]).toMatchObject({ version: 3, sha256: sha256(merged), merged: how })
    // Anybody can recompute it from the three texts.
    const base = docOf(await readBy(undefined, doc.id, how.base_version)).text!
    const onto = docOf(await readBy(undefined, doc.id, how.onto_version)).text!
    expect(mergeTexts(base, onto, signedTextOf(read))).toBe(merged)
  })

  test('edits that touch are refused with what is needed to merge them, and nothing is stored', async () => {
    const doc = await create(lines.join('\n'), { room: 'hall' })
    const second = await write(doc.id, 1, withLine(3, 'three by ada'), ada, { title: 'Newer' })
    const answer = await write(doc.id, 1, withLine(4, 'four by ben'), ben)
    expect(summaryOf(answer)).toBe('400 conflict data.base_version')
    const { error } = JSON.parse(answer.text) as { error: { details: object } }
    expect(error.details).toEqual({
      version_id: second.data.receipt!.event_id,
      version: 2,
      title: 'Newer',
      text: withLine(3, 'three by ada'),
      base: lines.join('\n'),
    })
    expect((await historyBy(eve, doc.id)).length).toBe(2)
    expect(docOf(await write(doc.id, 2, 'joined by hand', ben)).version).toBe(3)
  })

  test('two writers who made the same change have no conflict', async () => {
    const doc = await create(lines.join('\n'), { room: 'hall' })
    await write(doc.id, 1, withLine(3, 'agreed'))
    expect(docOf(await write(doc.id, 1, withLine(3, 'agreed'), ben))).toMatchObject({
      version: 3,
      text: withLine(3, 'agreed'),
    })
  })

  test('endlessly repeated lines are merged like any others; an edit of too many lines for a shard is refused', async () => {
    const many = `top${'\n'.repeat(60_000)}`
    const doc = await create(many, { room: 'hall' })
    await write(doc.id, 1, `${many}end`)
    expect(docOf(await write(doc.id, 1, `begin\n${many}`, ben)).text).toBe(`begin\n${many}end`)
    const numbered = Array.from({ length: 2000 }, (_, n) => `${n}`)
    const other = await create(numbered.join('\n'), { room: 'hall' })
    await write(other.id, 1, ['first', ...numbered].join('\n'))
    const rewritten = numbered.map((text, n) => (n > 10 && n < 600 ? `new ${text}` : text)).join('\n')
    expect(summaryOf(await write(other.id, 1, rewritten, ben))).toBe('400 conflict data.base_version')
  })

  test('a merge that would exceed the maximum size of a document is refused', async () => {
    const half = 'x'.repeat(32_000)
    const doc = await create(`a\nb\nc\nd\n${'y'.repeat(1000)}`, { room: 'hall' })
    await write(doc.id, 1, `a\n${half}\nc\nd\n${'y'.repeat(1000)}`)
    expect(summaryOf(await write(doc.id, 1, `a\nb\nc\n${half}${half}\n`, ben))).toBe('400 conflict data.base_version')
  })

  test('twenty writers at once: everything accepted is in the history as it was signed, and in the text', async () => {
    const base = Array.from({ length: 100 }, (_, n) => `paragraph ${n}`)
    const doc = await create(base.join('\n'), { room: 'hall' })
    const writers = Array.from({ length: 20 }, (_, n) => person(`doc writer ${n}`))
    await Promise.all(writers.map(join))
    const signed = writers.map((who, n) =>
      client.sign(who, writeFields(doc.id, 1, withLine(n * 5, `paragraph ${n * 5} by writer ${n}`, base))),
    )
    const answers = await Promise.all(signed.flatMap(({ body }) => [client.send(body), client.send(body)]))
    expect(answers.map(summaryOf)).toEqual(answers.map(() => '200 ok'))
    const versions = await historyBy(eve, doc.id)
    expect(versions.map(({ version }) => version)).toEqual(Array.from({ length: 21 }, (_, n) => 21 - n))
    const texts = new Map<string, string>()
    for (const { version } of versions) {
      const read = docOf(await readBy(undefined, doc.id, version))
      texts.set(read.version_id, signedTextOf(read))
    }
    for (const [n, { eventId }] of signed.entries())
      expect(texts.get(eventId)).toBe(withLine(n * 5, `paragraph ${n * 5} by writer ${n}`, base))
    const whole = base.map((line, n) => (n % 5 === 0 ? `${line} by writer ${n / 5}` : line))
    expect(docOf(await readBy(undefined, doc.id)).text).toBe(whole.join('\n'))
  })

  test('twenty writers of one line: each is accepted or shown the newest text, and none overwrites another unseen', async () => {
    const doc = await create('0', { room: 'hall' })
    const writers = Array.from({ length: 20 }, (_, n) => person(`doc racer ${n}`))
    await Promise.all(writers.map(join))
    let conflicts = 0
    await Promise.all(
      writers.map(async (who, n) => {
        let [base, text] = [1, '0']
        for (;;) {
          const answer = await write(doc.id, base, `${text}\nadded by ${n}`, who)
          if (answer.status === 200) return
          const { error } = JSON.parse(answer.text) as { error: { details: { version: number; text: string } } }
          conflicts++
          ;[base, text] = [error.details.version, error.details.text]
        }
      }),
    )
    const text = docOf(await readBy(undefined, doc.id)).text!
    expect(text.split('\n').sort()).toEqual(['0', ...writers.map((_, n) => `added by ${n}`)].sort())
    expect((await historyBy(eve, doc.id)).length).toBe(21)
    expect(conflicts).toBeGreaterThan(0)
  })

  test('a document has at most 1,000 versions', async () => {
    const doc = await create('v1')
    for (let version = 1; version < 1000; version++) {
      const answer = await write(doc.id, version, `v${version + 1}`)
      if (answer.status !== 200) throw new Error(answer.text)
    }
    expect(summaryOf(await write(doc.id, 1000, 'v1001'))).toBe('400 wrong_state target')
    expect(docOf(await readBy(undefined, doc.id)).text).toBe('v1000')
    expect(docOf(await readBy(undefined, doc.id, 517)).text).toBe('v517')
  })
})
