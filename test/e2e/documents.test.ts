import { createHash } from 'node:crypto'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { mergeTexts } from '../../actors/documents/merge.ts'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { type Answer, Client, type Fields, person } from '../support/client.ts'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

const [ada, ben, eve, mod] = [person('doc ada'), person('doc ben'), person('doc eve'), person('doc mod')]
const directory = boardDirectory()
const env = { SHARDS: '2' }
let board: Board
let client: Client

type Merge = {
  readonly version_id: string
  readonly signed_text_sha256: string
  readonly merged: true
  readonly base_version: number
  readonly onto_version: number
}
type DocJson = {
  readonly id: string
  readonly version_id: string
  readonly version: number
  readonly versions: number
  readonly title: string
  readonly visibility: string
  readonly room?: string
  readonly text?: string
  readonly sha256: string
  readonly size: number
  readonly signed_payload?: string
  readonly author: { readonly id: string }
  readonly merged?: Merge
}

const start = async () => {
  board = await startBoard({ directory, env })
  client = await Client.of(board)
}

beforeAll(async () => {
  await start()
  await client.command(ada, { operation: 'room.create', room: 'den', visibility: 'private', members: [ben.id] })
  await client.command(ada, { operation: 'room.create', room: 'hall', members: [mod.id] })
  await client.command(ada, { operation: 'room.moderator.add', room: 'hall', target: mod.id })
})
afterAll(() => client.close())

const told = ({ status, code, field }: Answer) => `${status} ${code ?? 'ok'}${field === undefined ? '' : ` ${field}`}`
const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')

function docOf({ data, text }: Answer): DocJson {
  const { doc } = data as { doc?: DocJson }
  if (doc === undefined) throw new Error(text)
  return doc
}

function createFields(text: string, more: Record<string, string> = {}, title = 'Plan'): Fields {
  return { operation: 'docs.create', text, data: JSON.stringify({ schema: 1, title }), ...more }
}

function writeFields(target: string, base_version: number, text: string, more: object = {}): Fields {
  return { operation: 'docs.write', target, text, data: JSON.stringify({ schema: 1, base_version, ...more }) }
}

const create = async (text: string, more: Record<string, string> = {}, who = ada, title = 'Plan') =>
  docOf(await client.command(who, createFields(text, more, title)))
const write = (target: string, base: number, text: string, who = ada, more: object = {}) =>
  client.command(who, writeFields(target, base, text, more))
const readBy = (who: typeof ada | undefined, target: string, version?: number) => {
  const data = version === undefined ? {} : { data: JSON.stringify({ schema: 1, version }) }
  const fields = { operation: 'docs.read', target, ...data }
  return who === undefined ? client.send(JSON.stringify(fields)) : client.command(who, fields)
}
const historyBy = async (who: typeof ada, target: string) => {
  const versions: DocJson[] = []
  let cursor = ''
  do {
    const answer = await client.command(who, {
      operation: 'docs.history',
      target,
      limit: 7,
      ...(cursor === '' ? {} : { cursor }),
    })
    const { versions: some } = answer.data as { versions?: DocJson[] }
    if (some === undefined) throw new Error(answer.text)
    versions.push(...some)
    cursor = answer.data.next_cursor ?? ''
  } while (cursor !== '')
  return versions
}
const signedTextOf = ({ signed_payload }: DocJson) =>
  (JSON.parse(signed_payload!) as { command: { text: string } }).command.text
const idsOf = ({ data, text }: Answer) => {
  const { docs } = data as { docs?: { id: string }[] }
  if (docs === undefined) throw new Error(text)
  return docs.map(({ id }) => id)
}
const listBy = async (who: typeof ada | undefined, fields: Record<string, string | number> = {}) => {
  const command = { operation: 'docs.list', ...fields }
  return who === undefined ? client.send(JSON.stringify(command)) : client.command(who, command)
}
const own = { data: '{"schema":1,"own":true}' }

describe('one writer', () => {
  test('a document is made, read by anybody, and written on; every version stays', async () => {
    const made = await client.command(ada, createFields('one\n'))
    const doc = docOf(made)
    expect(doc).toEqual({
      id: made.data.receipt!.event_id,
      version_id: made.data.receipt!.event_id,
      version: 1,
      title: 'Plan',
      visibility: 'public',
      size: 4,
      sha256: sha256('one\n'),
      written_at: made.data.receipt!.accepted_at,
    })
    const second = await write(doc.id, 1, 'one\ntwo\n', ada, { title: 'Better plan' })
    expect(docOf(second)).toMatchObject({ id: doc.id, version: 2, title: 'Better plan' })
    expect(docOf(second)).not.toHaveProperty('merged')
    const read = docOf(await readBy(undefined, doc.id))
    expect(read).toMatchObject({
      ...{ id: doc.id, version: 2, versions: 2, title: 'Better plan', text: 'one\ntwo\n', owner: ada.id },
      version_id: second.data.receipt!.event_id,
      author: { id: ada.id, public_key: ada.publicKey },
    })
    expect(sha256(read.signed_payload!).slice(0, 32)).toBe(read.version_id)
    expect(docOf(await readBy(undefined, doc.id, 1))).toMatchObject({ version: 1, title: 'Plan', text: 'one\n' })
    expect((await historyBy(eve, doc.id)).map(({ version, sha256 }) => [version, sha256])).toEqual([
      [2, sha256('one\ntwo\n')],
      [1, sha256('one\n')],
    ])
  })

  test('a text of 64 KiB fits, one byte more does not, and a title has 1 to 200 characters', async () => {
    const text = 'ä'.repeat(32_768)
    const doc = await create(text)
    expect(docOf(await readBy(undefined, doc.id)).text).toBe(text)
    expect(told(await client.command(ada, createFields(`${text}x`)))).toBe('400 too_large text')
    expect(told(await write(doc.id, 1, `${text}x`))).toBe('400 too_large text')
    expect(told(await client.command(ada, createFields('x', {}, '')))).toBe('400 invalid_field data')
    expect(told(await client.command(ada, createFields('x', {}, 't'.repeat(201))))).toBe('400 invalid_field data')
    expect(told(await client.command(ada, createFields('x', {}, 't'.repeat(200))))).toBe('200 ok')
    expect(told(await client.command(ada, { operation: 'docs.create', text: 'x' }))).toBe('400 missing_field data')
    expect(told(await client.post(ada, { text: 'x'.repeat(32_769) }))).toBe('400 too_large text')
  })

  test('what is wrong is refused with its field', async () => {
    const doc = await create('x')
    const nothing = '0'.repeat(32)
    expect(told(await write(doc.id, 2, 'y'))).toBe('400 invalid_field data')
    expect(told(await write(doc.id, 0, 'y'))).toBe('400 invalid_field data')
    expect(told(await write(nothing, 1, 'y'))).toBe('400 not_found target')
    expect(told(await write(doc.id, 1, 'y', eve))).toBe('403 forbidden target')
    expect(told(await readBy(undefined, nothing))).toBe('400 not_found target')
    expect(told(await readBy(undefined, doc.id, 2))).toBe('400 not_found data')
    expect(told(await readBy(undefined, 'lobby'))).toBe('400 invalid_field target')
    expect(told(await client.command(ada, createFields('x', { room: 'nowhere' })))).toBe('400 not_found room')
    expect(told(await client.command(ada, createFields('x', { visibility: 'private' })))).toBe(
      '400 invalid_field visibility',
    )
    expect(told(await client.command(eve, { operation: 'docs.history', target: doc.id, cursor: 'AAAA' }))).toBe(
      '400 invalid_field cursor',
    )
    expect(told(await listBy(undefined, own))).toBe('403 unsigned')
  })

  test('a repeated request has one effect, outside of rooms too', async () => {
    const [first, again] = await Promise.all(
      [1, 2].map(() => client.command(ada, createFields('once', { request_id: 'doc-once' }))),
    )
    expect(docOf(first!)).toEqual(docOf(again!))
    const { id } = docOf(first!)
    const signed = client.sign(ada, writeFields(id, 1, 'twice'))
    const written = docOf(await client.send(signed.body))
    await write(id, 2, 'thrice')
    const late = await client.send(signed.body)
    expect([docOf(late), late.data.receipt?.duplicate]).toEqual([written, true])
    await client.command(ada, { operation: 'docs.delete', target: id })
    expect(docOf(await client.send(signed.body))).toEqual(written)
  })
})

describe('who may', () => {
  test('an unlisted document is read by whoever has its id, and is in no list, no count and no update', async () => {
    const cursor = (await client.send('{"operation":"updates.get","data":"{\\"schema\\":1}"}')).data as {
      cursor?: string
    }
    const changes = async () => /^broadside_change (\d+)$/m.exec((await client.get('/metrics')).text)![1]
    const before = await changes()
    for (const room of ['', 'hall']) {
      const doc = await create('quiet', { visibility: 'unlisted', ...(room === '' ? {} : { room }) })
      expect(doc.visibility).toBe('unlisted')
      expect(docOf(await readBy(undefined, doc.id)).text).toBe('quiet')
      const who = room === '' ? ada : eve
      expect(docOf(await write(doc.id, 1, 'quiet still', who)).version).toBe(2)
      expect(docOf(await readBy(eve, doc.id)).text).toBe('quiet still')
      expect((await historyBy(eve, doc.id)).length).toBe(2)
      expect(idsOf(await listBy(undefined))).not.toContain(doc.id)
      expect(idsOf(await listBy(ada, { room: 'hall' }))).not.toContain(doc.id)
      expect(idsOf(await listBy(eve, own))).not.toContain(doc.id)
      expect(idsOf(await listBy(ada, own))).toContain(doc.id)
      expect(told(await client.command(eve, { operation: 'docs.delete', target: doc.id }))).toBe('403 forbidden target')
    }
    expect(await changes()).toBe(before)
    const news = await client.get(`/api/updates?wait=0&cursor=${cursor.cursor}`)
    expect((news.data as { updates?: unknown[] }).updates).toEqual([])
  })

  test('a document of a private room is its members’ alone', async () => {
    const doc = await create('secret', { room: 'den' })
    expect(doc).toMatchObject({ visibility: 'private', room: 'den' })
    expect(told(await client.command(ada, createFields('x', { room: 'den', visibility: 'public' })))).toBe(
      '400 invalid_field visibility',
    )
    expect(docOf(await write(doc.id, 1, 'more secret', ben)).version).toBe(2)
    expect(docOf(await readBy(ben, doc.id)).text).toBe('more secret')
    expect(idsOf(await listBy(ben, { room: 'den' }))).toContain(doc.id)
    for (const answer of [
      await readBy(eve, doc.id),
      await readBy(undefined, doc.id),
      await client.command(eve, { operation: 'docs.history', target: doc.id }),
      await listBy(eve, { room: 'den' }),
      await client.command(eve, createFields('x', { room: 'den' })),
    ])
      expect(told(answer)).toMatch(/^403 private_room/)
    expect(told(await write(doc.id, 2, 'x', eve))).toBe('400 not_found target')
    expect(told(await client.command(eve, { operation: 'docs.delete', target: doc.id }))).toBe('400 not_found target')
    expect(idsOf(await listBy(undefined))).not.toContain(doc.id)
    expect(told(await client.command(ada, { operation: 'room.member.remove', room: 'den', target: ben.id }))).toBe(
      '200 ok',
    )
    expect(told(await readBy(ben, doc.id))).toBe('403 private_room')
    expect(told(await write(doc.id, 2, 'x', ben))).toBe('400 not_found target')
    await client.command(ada, { operation: 'room.member.add', room: 'den', target: ben.id })
  })

  test('in a public room whoever may post writes, and the policy of the room decides who that is', async () => {
    const doc = await create('ours', { room: 'hall' })
    expect(docOf(await write(doc.id, 1, 'ours and mine', eve)).version).toBe(2)
    const policy = (set: object) =>
      client.command(ada, { operation: 'room.policy.set', room: 'hall', data: JSON.stringify(set) })
    expect(told(await policy({ write: 'members' }))).toBe('200 ok')
    expect(told(await write(doc.id, 2, 'x', eve))).toBe('403 room_write_restricted room')
    expect(told(await client.command(eve, createFields('x', { room: 'hall' })))).toBe('403 room_write_restricted room')
    expect(docOf(await write(doc.id, 2, 'by a member', mod)).version).toBe(3)
    await policy({ write: 'open', closed: true })
    expect(told(await write(doc.id, 3, 'x'))).toBe('400 wrong_state room')
    expect(docOf(await readBy(undefined, doc.id)).text).toBe('by a member')
    await policy({ closed: false })
  })

  test('who made it, and who runs the room, delete it; then it is gone from every read and list', async () => {
    const [mine, theirs] = [await create('a', { room: 'hall' }, eve), await create('b', { room: 'hall' }, eve)]
    const remove = (who: typeof ada, target: string) =>
      client.command(who, { operation: 'docs.delete', target, reason: 'done' })
    expect(told(await remove(ben, mine.id))).toBe('403 forbidden target')
    const answer = await remove(eve, mine.id)
    expect((answer.data as { doc?: unknown }).doc).toEqual({ id: mine.id, deleted: true, reason: 'done' })
    expect(told(await remove(mod, theirs.id))).toBe('200 ok')
    for (const { id } of [mine, theirs]) {
      expect(told(await readBy(undefined, id))).toBe('400 not_found target')
      expect(told(await readBy(eve, id, 1))).toBe('400 not_found target')
      expect(told(await client.command(eve, { operation: 'docs.history', target: id }))).toBe('400 not_found target')
      expect(told(await write(id, 1, 'x', eve))).toBe('400 not_found target')
      expect(told(await remove(eve, id))).toBe('400 not_found target')
      for (const list of [await listBy(undefined), await listBy(eve, { room: 'hall' }), await listBy(eve, own)])
        expect(idsOf(list)).not.toContain(id)
    }
  })

  test('lists: newest activity first, page by page; one’s own over all actors', async () => {
    const who = person('doc lister')
    const made: string[] = []
    await client.command(who, { operation: 'room.create', room: 'shelf' })
    await client.command(who, { operation: 'room.create', room: 'closet', visibility: 'private' })
    for (const more of [{}, { room: 'shelf' }, { room: 'closet' }, { visibility: 'unlisted' }, { room: 'shelf' }, {}])
      made.push((await create('x', more as Record<string, string>, who)).id)
    const walk = async (reader: typeof ada | undefined, fields: Record<string, string | number>) => {
      const ids: string[] = []
      let cursor = ''
      do {
        const answer = await listBy(reader, { ...fields, limit: 2, ...(cursor === '' ? {} : { cursor }) })
        ids.push(...idsOf(answer))
        expect(answer.data.has_more).toBe(answer.data.next_cursor !== undefined)
        cursor = answer.data.next_cursor ?? ''
      } while (cursor !== '')
      return ids
    }
    expect((await walk(who, own)).sort()).toEqual([...made].sort())
    expect(await walk(undefined, { room: 'shelf' })).toEqual([made[4], made[1]])
    await write(made[1]!, 1, 'y', who)
    expect(await walk(undefined, { room: 'shelf' })).toEqual([made[1], made[4]])
    expect(await walk(who, { room: 'closet' })).toEqual([made[2]])
    const listed = (await walk(undefined, {})).filter((id) => made.includes(id))
    expect(listed).toEqual([made[1], made[5], made[4], made[0]])
    const { data } = await listBy(who, { ...own, limit: 1 })
    expect(told(await listBy(ada, { ...own, cursor: data.next_cursor! }))).toBe('400 invalid_field cursor')
  })

  test('followers hear of each version of a public document', async () => {
    const { cursor } = (await client.send('{"operation":"updates.get","data":"{\\"schema\\":1}"}')).data as {
      cursor?: string
    }
    const doc = await create('news', { room: 'hall' })
    await write(doc.id, 1, 'more news')
    const { updates } = (await client.get(`/api/updates?wait=0&cursor=${cursor}`)).data as { updates?: object[] }
    expect(updates!.filter((each) => JSON.stringify(each).includes(doc.id)).length).toBe(2)
    expect(JSON.stringify(updates)).toContain('document.written')
  })
})

const lines = Array.from({ length: 40 }, (_, n) => `line ${n}`)
const withLine = (n: number, text: string, from = lines) => from.map((line, at) => (at === n ? text : line)).join('\n')

describe('many writers', () => {
  test('edits that do not touch are merged: the read gives the merged text, the version keeps what was signed', async () => {
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
    // Anybody can make it again from the three texts.
    const base = docOf(await readBy(undefined, doc.id, how.base_version)).text!
    const onto = docOf(await readBy(undefined, doc.id, how.onto_version)).text!
    expect(mergeTexts(base, onto, signedTextOf(read))).toBe(merged)
  })

  test('edits that touch are refused with what is needed to join them, and nothing is stored', async () => {
    const doc = await create(lines.join('\n'), { room: 'hall' })
    const second = await write(doc.id, 1, withLine(3, 'three by ada'), ada, { title: 'Newer' })
    const answer = await write(doc.id, 1, withLine(4, 'four by ben'), ben)
    expect(told(answer)).toBe('400 conflict data')
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

  test('both made the same change: that is no conflict', async () => {
    const doc = await create(lines.join('\n'), { room: 'hall' })
    await write(doc.id, 1, withLine(3, 'agreed'))
    expect(docOf(await write(doc.id, 1, withLine(3, 'agreed'), ben))).toMatchObject({
      version: 3,
      text: withLine(3, 'agreed'),
    })
  })

  test('texts that would hold the shard up are not merged but refused', async () => {
    const many = '\n'.repeat(60_000)
    const doc = await create(many, { room: 'hall' })
    await write(doc.id, 1, `${many}end`)
    expect(told(await write(doc.id, 1, `begin${many}`, ben))).toBe('400 conflict data')
  })

  test('a merge that would be longer than a document may be is refused', async () => {
    const half = 'x'.repeat(32_000)
    const doc = await create(`a\nb\nc\nd\n${'y'.repeat(1000)}`, { room: 'hall' })
    await write(doc.id, 1, `a\n${half}\nc\nd\n${'y'.repeat(1000)}`)
    expect(told(await write(doc.id, 1, `a\nb\nc\n${half}${half}\n`, ben))).toBe('400 conflict data')
  })

  test('twenty writers at once: whatever was accepted is in the history as it was signed, and in the text', async () => {
    const base = Array.from({ length: 100 }, (_, n) => `paragraph ${n}`)
    const doc = await create(base.join('\n'), { room: 'hall' })
    const writers = Array.from({ length: 20 }, (_, n) => person(`doc writer ${n}`))
    const signed = writers.map((who, n) =>
      client.sign(who, writeFields(doc.id, 1, withLine(n * 5, `paragraph ${n * 5} by writer ${n}`, base))),
    )
    const answers = await Promise.all(signed.flatMap(({ body }) => [client.send(body), client.send(body)]))
    expect(answers.map(told)).toEqual(answers.map(() => '200 ok'))
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

  test('twenty writers of one line: each is accepted or told the newest text, and none overwrites another unseen', async () => {
    const doc = await create('0', { room: 'hall' })
    const writers = Array.from({ length: 20 }, (_, n) => person(`doc racer ${n}`))
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
    expect(told(await write(doc.id, 1000, 'v1001'))).toBe('400 wrong_state target')
    expect(docOf(await readBy(undefined, doc.id)).text).toBe('v1000')
    expect(docOf(await readBy(undefined, doc.id, 517)).text).toBe('v517')
  })
})

describe('merging', () => {
  const line = fc.constantFrom('a', 'b', 'c', '', '  ', 'x = 1', '}')
  /** Lines that are all different: then which line an edit means is beyond doubt. */
  const base = fc
    .array(
      fc.string({ maxLength: 5 }).map((text) => text.replaceAll('\n', ' ')),
      { minLength: 4, maxLength: 30 },
    )
    .map((texts) => texts.map((text, n) => `${n}:${text}`))
  const edit = fc.record({
    at: fc.nat(),
    remove: fc.nat({ max: 3 }),
    insert: fc.array(
      fc.string({ maxLength: 4 }).map((text) => `+${text.replaceAll('\n', ' ')}`),
      { maxLength: 3 },
    ),
  })
  const apply = (
    texts: readonly string[],
    { at, remove, insert }: { at: number; remove: number; insert: string[] },
  ) => [...texts.slice(0, at), ...insert, ...texts.slice(at + remove)]

  test('of edits that do not touch is both applied, whoever came first; of edits that touch and differ there is none', () => {
    fc.assert(
      fc.property(base, edit, edit, (texts, one, two) => {
        const place = ({ at, remove, insert }: typeof one) => {
          const start = at % texts.length
          return { at: start, remove: Math.min(remove, texts.length - start), insert }
        }
        const [first, second] = [place(one), place(two)].sort((a, b) => a.at - b.at) as [typeof one, typeof two]
        const isNothing = (each: typeof one) => each.remove === 0 && each.insert.length === 0
        fc.pre(!isNothing(first) && !isNothing(second))
        const [left, right] = [apply(texts, first), apply(texts, second)].map((each) => each.join('\n')) as [
          string,
          string,
        ]
        const merged = [mergeTexts(texts.join('\n'), left, right), mergeTexts(texts.join('\n'), right, left)]
        if (second.at > first.at + first.remove) {
          const both = apply(apply(texts, second), first).join('\n')
          expect(merged).toEqual([both, both])
        } else if (left === right) expect(merged).toEqual([left, left])
        else expect(merged).toEqual([undefined, undefined])
      }),
      { numRuns: 2000 },
    )
  })

  test('with what nobody changed is the other side, and it depends on nothing but the texts', () => {
    const text = fc.array(line, { maxLength: 12 }).map((texts) => texts.join('\n'))
    fc.assert(
      fc.property(text, text, (before, after) => {
        expect(mergeTexts(before, before, after)).toBe(after)
        expect(mergeTexts(before, after, before)).toBe(after)
        expect(mergeTexts(before, after, after)).toBe(after)
      }),
    )
  })
})

test('a restart from snapshots, a replay without them and a kill show the same documents', async () => {
  const everything = async () => {
    const found: string[] = []
    for (const who of [ada, ben, eve]) {
      const ids = idsOf(await listBy(who, { ...own, limit: 200 }))
      found.push((await listBy(who, { limit: 200 })).text, (await listBy(who, { room: 'hall' })).text, ids.join())
      for (const id of ids.slice(0, 40)) {
        found.push((await readBy(ben, id)).text)
        found.push(JSON.stringify((await historyBy(who, id)).slice(0, 20)))
      }
    }
    found.push((await listBy(ada, { room: 'den' })).text)
    return found.map((text) => text.replace(/"next_cursor":"[^"]*"/g, ''))
  }
  const before = await everything()
  expect(before.length).toBeGreaterThan(30)
  const again = async (end: () => Promise<unknown>) => {
    await end()
    client.close()
    await start()
    expect(await everything()).toEqual(before)
  }
  await again(() => board.stop())
  await again(async () => {
    await board.stop()
    for (const shard of ['shard-00', 'shard-01']) rmSync(join(directory, shard, 'snapshots'), { recursive: true })
    rmSync(join(directory, 'log', 'feed-snapshots'), { recursive: true })
  })
  await again(() => board.kill())
})
