/** Documents as readers and writers see them: versions, rights, lists, and the same after a restart. */
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { summaryOf } from '../support/answers.ts'
import { sha256 } from '../support/blobs.ts'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { Client, person } from '../support/client.ts'
import { createFields, docIdsOf, docOf, documentsOf, ownDocuments, writeFields } from '../support/documents.ts'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 })

const [ada, ben, eve, mod] = [person('doc ada'), person('doc ben'), person('doc eve'), person('doc mod')]
const operator = person('doc operator')
const directory = boardDirectory()
const env = { SHARDS: '2', OPERATORS: operator.id }
let board: Board
let client: Client
const { create, write, readBy, listBy, historyBy } = documentsOf(() => client, ada)

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

describe('with one writer', () => {
  test('a document is created, read by anybody, and updated; every version is retained', async () => {
    const made = await client.command(ada, createFields('one\n'))
    const doc = docOf(made)
    expect(doc).toEqual({
      id: made.data.receipt!.event_id,
      version_id: made.data.receipt!.event_id,
      version: 1,
      title: 'Plan',
      visibility: 'public',
      editors: 'owner',
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

  test('a text of 64 KiB is accepted, one more byte is not, and a title has 1 to 200 characters', async () => {
    const text = 'ä'.repeat(32_768)
    const doc = await create(text)
    expect(docOf(await readBy(undefined, doc.id)).text).toBe(text)
    expect(summaryOf(await client.command(ada, createFields(`${text}x`)))).toBe('400 too_large text')
    expect(summaryOf(await write(doc.id, 1, `${text}x`))).toBe('400 too_large text')
    expect(summaryOf(await client.command(ada, createFields('x', {}, '')))).toBe('400 invalid_field data.title')
    expect(summaryOf(await client.command(ada, createFields('x', {}, 't'.repeat(201))))).toBe(
      '400 invalid_field data.title',
    )
    expect(summaryOf(await client.command(ada, createFields('x', {}, 't'.repeat(200))))).toBe('200 ok')
    expect(summaryOf(await client.command(ada, { operation: 'docs.create', text: 'x' }))).toBe('400 missing_field data')
    expect(summaryOf(await client.post(ada, { text: 'x'.repeat(32_769) }))).toBe('400 too_large text')
  })

  test('invalid requests are refused with the field at fault', async () => {
    const doc = await create('x')
    const nothing = '0'.repeat(32)
    expect(summaryOf(await write(doc.id, 2, 'y'))).toBe('400 invalid_field data.base_version')
    expect(summaryOf(await write(doc.id, 0, 'y'))).toBe('400 invalid_field data.base_version')
    expect(summaryOf(await write(nothing, 1, 'y'))).toBe('400 not_found target')
    expect(summaryOf(await write(doc.id, 1, 'x'))).toBe('400 invalid_field text')
    expect(summaryOf(await write(doc.id, 1, 'x', ada, { title: 'Another' }))).toBe('200 ok')
    expect(summaryOf(await write(doc.id, 2, 'x', ada, { title: 'Another' }))).toBe('400 invalid_field text')
    expect(summaryOf(await write(doc.id, 1, 'y', eve))).toBe('403 forbidden target')
    expect(summaryOf(await readBy(undefined, nothing))).toBe('400 not_found target')
    expect(summaryOf(await readBy(undefined, doc.id, 3))).toBe('400 not_found data.version')
    expect(summaryOf(await readBy(undefined, 'lobby'))).toBe('400 invalid_field target')
    expect(summaryOf(await client.command(ada, createFields('x', { room: 'nowhere' })))).toBe('400 not_found room')
    expect(summaryOf(await client.command(ada, createFields('x', { visibility: 'private' })))).toBe(
      '400 invalid_field visibility',
    )
    expect(summaryOf(await client.command(eve, { operation: 'docs.history', target: doc.id, cursor: 'AAAA' }))).toBe(
      '400 invalid_field cursor',
    )
    expect(summaryOf(await listBy(undefined, ownDocuments))).toBe('403 unsigned')
  })

  test('a repeated request has one effect, also outside of rooms', async () => {
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

describe('rights', () => {
  test('an unlisted document can be read by anyone with its id, and is in no list, count or update', async () => {
    const cursor = (await client.send('{"operation":"updates.get","data":"{\\"schema\\":1}"}')).data as {
      cursor?: string
    }
    const changes = async () => /^broadside_change (\d+)$/m.exec((await client.get('/metrics')).text)![1]
    const before = await changes()
    for (const room of ['', 'hall']) {
      const doc = await create('quiet', { visibility: 'unlisted', ...(room === '' ? {} : { room }) })
      expect(doc.visibility).toBe('unlisted')
      expect(docOf(await readBy(undefined, doc.id)).text).toBe('quiet')
      const who = room === '' ? ada : mod
      expect(docOf(await write(doc.id, 1, 'quiet still', who)).version).toBe(2)
      expect(docOf(await readBy(eve, doc.id)).text).toBe('quiet still')
      expect((await historyBy(eve, doc.id)).length).toBe(2)
      expect(docIdsOf(await listBy(undefined))).not.toContain(doc.id)
      expect(docIdsOf(await listBy(ada, { room: 'hall' }))).not.toContain(doc.id)
      expect(docIdsOf(await listBy(eve, ownDocuments))).not.toContain(doc.id)
      expect(docIdsOf(await listBy(ada, ownDocuments))).toContain(doc.id)
      expect(summaryOf(await client.command(eve, { operation: 'docs.delete', target: doc.id }))).toBe(
        '403 forbidden target',
      )
    }
    expect(await changes()).toBe(before)
    const news = await client.get(`/api/updates?wait=0&cursor=${cursor.cursor}`)
    expect((news.data as { updates?: unknown[] }).updates).toEqual([])
  })

  test('plain GETs read public documents: newest, one version, the history and the lists, and never stale content', async () => {
    for (const visibility of ['public', 'unlisted']) {
      const doc = await create('first', { visibility })
      const get = async () => docOf(await client.get(`/api/docs/${doc.id}`)).text
      expect(await get()).toBe('first')
      await write(doc.id, 1, 'second')
      expect(await get()).toBe('second')
      expect(docOf(await client.get(`/api/docs/${doc.id}?version=1`)).text).toBe('first')
      const { versions } = (await client.get(`/api/docs-history/${doc.id}`)).data as { versions?: object[] }
      expect(versions!.length).toBe(2)
      expect(docIdsOf(await client.get('/api/docs?limit=1')).includes(doc.id)).toBe(visibility === 'public')
      await client.command(ada, { operation: 'docs.delete', target: doc.id })
      expect(summaryOf(await client.get(`/api/docs/${doc.id}`))).toBe('400 not_found target')
    }
    const secret = await create('secret', { room: 'den' })
    expect(summaryOf(await client.get(`/api/docs/${secret.id}`))).toBe('403 private_room target')
    expect(summaryOf(await client.get('/api/docs?room=den'))).toBe('403 private_room room')
    expect(summaryOf(await client.get('/api/docs/lobby'))).toBe('400 invalid_field target')
  })

  test('a document in a private room is visible only to its members', async () => {
    const doc = await create('secret', { room: 'den' })
    expect(doc).toMatchObject({ visibility: 'private', room: 'den' })
    expect(summaryOf(await client.command(ada, createFields('x', { room: 'den', visibility: 'public' })))).toBe(
      '400 invalid_field visibility',
    )
    expect(docOf(await write(doc.id, 1, 'more secret', ben)).version).toBe(2)
    expect(docOf(await readBy(ben, doc.id)).text).toBe('more secret')
    expect(docIdsOf(await listBy(ben, { room: 'den' }))).toContain(doc.id)
    for (const answer of [
      await readBy(eve, doc.id),
      await readBy(undefined, doc.id),
      await client.command(eve, { operation: 'docs.history', target: doc.id }),
      await listBy(eve, { room: 'den' }),
      await client.command(eve, createFields('x', { room: 'den' })),
    ])
      expect(summaryOf(answer)).toMatch(/^403 private_room/)
    expect(summaryOf(await write(doc.id, 2, 'x', eve))).toBe('400 not_found target')
    expect(summaryOf(await client.command(eve, { operation: 'docs.delete', target: doc.id }))).toBe(
      '400 not_found target',
    )
    expect(docIdsOf(await listBy(undefined))).not.toContain(doc.id)
    expect(summaryOf(await client.command(ada, { operation: 'room.member.remove', room: 'den', target: ben.id }))).toBe(
      '200 ok',
    )
    expect(summaryOf(await readBy(ben, doc.id))).toBe('403 private_room target')
    expect(summaryOf(await write(doc.id, 2, 'x', ben))).toBe('400 not_found target')
    await client.command(ada, { operation: 'room.member.add', room: 'den', target: ben.id })
  })

  test('in a public room its members and the creator can edit a document, and the room’s policy decides who creates one', async () => {
    const doc = await create('ours', { room: 'hall' })
    expect([doc, docOf(await readBy(undefined, doc.id))]).toMatchObject([
      { editors: 'members' },
      { editors: 'members' },
    ])
    expect(summaryOf(await write(doc.id, 1, 'x', eve))).toBe('403 room_write_restricted target')
    expect(docOf(await write(doc.id, 1, 'ours and mine', mod)).version).toBe(2)
    const strange = await create('theirs', { room: 'hall' }, eve)
    expect(docOf(await write(strange.id, 1, 'theirs still', eve)).version).toBe(2)
    const policy = (set: object) =>
      client.command(ada, { operation: 'room.policy.set', room: 'hall', data: JSON.stringify(set) })
    expect(summaryOf(await policy({ write: 'members' }))).toBe('200 ok')
    expect(docOf(await write(strange.id, 2, 'whatever the policy', eve)).version).toBe(3)
    expect(summaryOf(await client.command(eve, createFields('x', { room: 'hall' })))).toBe(
      '403 room_write_restricted room',
    )
    expect(docOf(await write(doc.id, 2, 'by a member', mod)).version).toBe(3)
    await policy({ write: 'open', closed: true })
    expect(summaryOf(await write(doc.id, 3, 'x'))).toBe('400 wrong_state room')
    expect(docOf(await readBy(undefined, doc.id)).text).toBe('by a member')
    await policy({ closed: false })
  })

  test('the creator and the room’s moderators can delete a document; it is then gone from every read and list', async () => {
    const [mine, theirs] = [await create('a', { room: 'hall' }, eve), await create('b', { room: 'hall' }, eve)]
    const remove = (who: typeof ada, target: string) =>
      client.command(who, { operation: 'docs.delete', target, reason: 'done' })
    expect(summaryOf(await remove(ben, mine.id))).toBe('403 forbidden target')
    const answer = await remove(eve, mine.id)
    expect((answer.data as { doc?: unknown }).doc).toEqual({ id: mine.id, deleted: true, reason: 'done' })
    expect(summaryOf(await remove(mod, theirs.id))).toBe('200 ok')
    const { entries } = (await client.get('/api/modlog?room=hall')).data as unknown as { entries: object[] }
    expect(entries[0]).toMatchObject({
      action: 'docs.delete',
      actor: { id: mod.id },
      target: theirs.id,
      reason: 'done',
    })
    expect(JSON.stringify(entries)).not.toContain(mine.id)
    const owners = await create('c', { room: 'hall' })
    expect(summaryOf(await remove(mod, owners.id))).toBe('403 forbidden target')
    expect(summaryOf(await remove(operator, owners.id))).toBe('200 ok')
    const quiet = await create('d', { visibility: 'unlisted' }, eve)
    expect(summaryOf(await remove(ben, quiet.id))).toBe('403 forbidden target')
    expect(summaryOf(await remove(operator, quiet.id))).toBe('200 ok')
    for (const { id } of [mine, theirs]) {
      expect(summaryOf(await readBy(undefined, id))).toBe('400 not_found target')
      expect(summaryOf(await readBy(eve, id, 1))).toBe('400 not_found target')
      expect(summaryOf(await client.command(eve, { operation: 'docs.history', target: id }))).toBe(
        '400 not_found target',
      )
      const late = await write(id, 1, 'x', eve)
      expect([summaryOf(late), late.text]).toEqual(['400 not_found target', expect.stringContaining('was deleted')])
      expect(summaryOf(await remove(eve, id))).toBe('400 not_found target')
      for (const list of [
        await listBy(undefined),
        await listBy(eve, { room: 'hall' }),
        await listBy(eve, ownDocuments),
      ])
        expect(docIdsOf(list)).not.toContain(id)
    }
  })

  test('lists are sorted by latest activity and paged; one’s own list covers all actors', async () => {
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
        ids.push(...docIdsOf(answer))
        expect(answer.data.has_more).toBe(answer.data.next_cursor !== undefined)
        cursor = answer.data.next_cursor ?? ''
      } while (cursor !== '')
      return ids
    }
    expect((await walk(who, ownDocuments)).sort()).toEqual([...made].sort())
    expect(await walk(undefined, { room: 'shelf' })).toEqual([made[4], made[1]])
    await write(made[1]!, 1, 'y', who)
    expect(await walk(undefined, { room: 'shelf' })).toEqual([made[1], made[4]])
    expect(await walk(who, { room: 'closet' })).toEqual([made[2]])
    const listed = (await walk(undefined, {})).filter((id) => made.includes(id))
    expect(listed).toEqual([made[1], made[5], made[4], made[0]])
    const { data } = await listBy(who, { ...ownDocuments, limit: 1 })
    expect(summaryOf(await listBy(ada, { ...ownDocuments, cursor: data.next_cursor! }))).toBe(
      '400 invalid_field cursor',
    )
  })

  test('followers are notified of each version of a public document', async () => {
    const { cursor } = (await client.send('{"operation":"updates.get","data":"{\\"schema\\":1}"}')).data as {
      cursor?: string
    }
    const doc = await create('news', { room: 'hall' })
    await write(doc.id, 1, 'more news')
    const { updates } = (await client.get(`/api/updates?wait=0&cursor=${cursor}`)).data as { updates?: object[] }
    expect(updates!.filter((each) => JSON.stringify(each).includes(doc.id))).toMatchObject(
      [1, 2].map((version) => ({ type: 'document.written', room: 'hall', document: doc.id, version })),
    )
  })
})

test('documents are unchanged after a restart from snapshots, a replay without them, and a kill', async () => {
  const everything = async () => {
    const found: string[] = []
    for (const who of [ada, ben, eve]) {
      const ids = docIdsOf(await listBy(who, { ...ownDocuments, limit: 200 }))
      found.push((await listBy(who, { limit: 200 })).text, (await listBy(who, { room: 'hall' })).text, ids.join())
      for (const id of ids.slice(0, 40)) {
        found.push((await readBy(ben, id)).text)
        found.push(JSON.stringify((await historyBy(who, id)).slice(0, 20)))
      }
    }
    found.push((await listBy(ada, { room: 'den' })).text)
    return found.map((text) => text.replace(/"next_cursor":"[^"]*"/g, ''))
  }
  const shared = await create('a\nb\nc\nd\ne', { room: 'hall' })
  await write(shared.id, 1, 'A\nb\nc\nd\ne')
  const signed = client.sign(mod, writeFields(shared.id, 1, 'a\nb\nc\nd\nE'))
  const merged = docOf(await client.send(signed.body))
  expect(merged).toMatchObject({ version: 3, text: 'A\nb\nc\nd\nE' })
  const before = await everything()
  expect(before.length).toBeGreaterThan(20)
  const again = async (end: () => Promise<unknown>) => {
    await end()
    client.close()
    await start()
    expect(await everything()).toEqual(before)
    const late = await client.send(signed.body)
    expect([docOf(late), late.data.receipt?.duplicate]).toEqual([merged, true])
  }
  await again(() => board.stop())
  await again(async () => {
    await board.stop()
    for (const shard of ['shard-00', 'shard-01']) rmSync(join(directory, shard, 'snapshots'), { recursive: true })
    rmSync(join(directory, 'log', 'feed-snapshots'), { recursive: true })
  })
  await again(() => board.kill())
})
