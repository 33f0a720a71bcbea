import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { Client, type EventJson, person, walkPages } from '../support/client.ts'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 })

const ada = person('ada')
const bob = person('bob')

describe.each([
  ['uws', 'back', '1'],
  ['node', 'threads', '1'],
  ['uws', 'clerks', '1'],
  ['uws', 'clerks', '2'],
])('a board on the %s engine, with actors placed as %s and HTTP_THREADS=%s', (engine, placement, httpThreads) => {
  let board: Board
  let client: Client

  beforeAll(async () => {
    board = await startBoard({
      directory: boardDirectory(),
      env: { HTTP_ENGINE: engine, PLACEMENT: placement, SHARDS: '1', HTTP_THREADS: httpThreads },
    })
    client = await Client.of(board)
  })
  afterAll(() => client.close())

  test('a post is answered with the event that every read then shows', async () => {
    const signed = client.sign(ada, {
      operation: 'post',
      room: 'desk',
      page: 'letters',
      kind: 'request',
      text: 'Who is in?',
    })
    const { status, data } = await client.send(signed.body)
    expect(status).toBe(200)
    expect(data.event).toMatchObject({
      type: 'event',
      event_id: signed.eventId,
      room: 'desk',
      page: 'letters',
      seq: 1,
      kind: 'request',
      author: { id: ada.id, public_key: ada.publicKey },
      text: 'Who is in?',
      thread: signed.eventId,
      hidden: false,
      via: 'command',
      log: { state: 'included' },
    })
    expect(data.receipt).toMatchObject({ event_id: signed.eventId, command_sha256: signed.sha256 })
    const { signed_payload, ...event } = (await client.get(`/api/events/${signed.eventId}`)).data.event!
    expect(event).toEqual(data.event)
    expect(JSON.parse(signed_payload!)).toMatchObject({ service: client.serviceId, command: { text: 'Who is in?' } })
    expect((await client.get('/api/events?room=desk')).data.events).toEqual([event])
    expect((await client.get(`/api/thread/${signed.eventId}`)).data.events).toEqual([event])
    expect((await client.get(`/api/events?author=${ada.id}&kind=request`)).data.events).toEqual([event])
  })

  test('a reply without a room goes to its target’s room and thread, and one into another room is not_found', async () => {
    const root = (await client.post(ada, { room: 'dock', page: 'ropes', text: 'root' })).data.event!
    const reply = (await client.post(bob, { text: 'reply', reply_to: root.event_id })).data.event!
    const deeper = (await client.post(ada, { text: 'deeper', reply_to: reply.event_id })).data.event!
    expect(reply).toMatchObject({ room: 'dock', seq: 2, reply_to: root.event_id, thread: root.event_id })
    expect(deeper).toMatchObject({ room: 'dock', seq: 3, reply_to: reply.event_id, thread: root.event_id })
    expect([reply.page, deeper.page]).toEqual(['ropes', 'ropes'])
    const onPage = (await client.get('/api/events?room=dock&page=ropes&order=asc')).data.events
    expect(onPage?.map(({ text }) => text)).toEqual(['root', 'reply', 'deeper'])
    const moved = (await client.post(bob, { page: 'knots', text: 'moved', reply_to: root.event_id })).data.event!
    expect(moved.page, 'a page that is named is kept').toBe('knots')
    // An export has the signed fields, which verifiers of every release check, and beside them where the reply is.
    const lines = (await client.get('/v1/export?room=dock')).text.trimEnd().split('\n')
    const pages = lines.map((line) => JSON.parse(line) as { page: string; actual_page?: string })
    expect(pages.map(({ page, actual_page }) => [page, actual_page])).toEqual([
      ['ropes', undefined],
      ['main', 'ropes'],
      ['main', 'ropes'],
      ['knots', undefined],
    ])
    const thread = (await client.get(`/api/thread/${deeper.event_id}`)).data
    expect(thread).toMatchObject({
      root_id: root.event_id,
      requested_event_id: deeper.event_id,
      room: 'dock',
      page: 'ropes',
    })
    expect(thread.events?.map(({ event_id }) => event_id)).toEqual(
      [root, reply, deeper, moved].map(({ event_id }) => event_id),
    )
    expect(await client.post(bob, { room: 'elsewhere', text: 'x', reply_to: root.event_id })).toMatchObject({
      status: 400,
      code: 'not_found',
      field: 'reply_to',
    })
    expect(await client.post(bob, { text: 'x', reply_to: 'f'.repeat(32) })).toMatchObject({
      status: 400,
      code: 'not_found',
    })
  })

  test('a post without room and page goes to lobby and main, which the first start created', async () => {
    const { event } = (await client.post(ada, { text: 'hello' })).data
    expect(event).toMatchObject({ room: 'lobby', page: 'main', kind: 'note' })
  })

  test('a first post creates a public room without an owner, and room.create one owned by its signer', async () => {
    await client.post(ada, { room: 'found', text: 'first' })
    const made = await client.command(bob, { operation: 'room.create', room: 'made', text: 'about it' })
    expect(made.data.room).toMatchObject({
      name: 'made',
      owner: bob.id,
      about: 'about it',
      visibility: 'public',
      count: 0,
    })
    const { data } = await client.send(JSON.stringify({ operation: 'room.get', room: 'found' }))
    expect(data.room).toMatchObject({ name: 'found', visibility: 'public', count: 1, threads: 1 })
    expect(data.room).not.toHaveProperty('owner')
    const again = await client.command(ada, { operation: 'room.create', room: 'made' })
    expect(again).toMatchObject({ status: 400, code: 'name_taken' })
  })

  test('pages and rooms are listed by latest activity, with counts of their content', async () => {
    for (const page of ['one', 'two', 'one', 'three']) await client.post(ada, { room: 'paged', page, text: page })
    await client.post(bob, { room: 'later', text: 'later' })
    const { pages } = (await client.get('/api/pages?room=paged')).data
    expect(pages?.map(({ name, count }) => [name, count])).toEqual([
      ['three', 1],
      ['one', 2],
      ['two', 1],
    ])
    const { rooms } = (await client.get('/api/rooms')).data
    expect(rooms?.slice(0, 2).map(({ name, count }) => [name, count])).toEqual([
      ['later', 1],
      ['paged', 4],
    ])
    expect((await client.get('/api/rooms?query=age')).data.rooms?.map(({ name }) => name)).toEqual(['paged'])
  })

  test('a handle is claimed by a post or by identity.register, once, and shown with every event from then on', async () => {
    const [cleo, dan, eve] = [person(`cleo ${engine}`), person(`dan ${engine}`), person(`eve ${engine}`)]
    const before = (await client.post(cleo, { room: 'names', text: 'no name yet' })).data.event!
    expect((await client.post(cleo, { room: 'names', text: 'a', handle: 'cleo' })).data.event?.author.handle).toBe(
      'cleo',
    )
    expect((await client.get(`/api/events/${before.event_id}`)).data.event?.author.handle).toBe('cleo')
    const taken = await client.post(dan, { room: 'names', text: 'b', handle: 'cleo' })
    expect(taken).toMatchObject({ status: 200, data: { handle_not_applied: 'taken' } })
    const reserved = await client.post(dan, { room: 'names', text: 'c', handle: 'broadside' })
    expect(reserved).toMatchObject({ status: 200, data: { handle_not_applied: 'reserved' } })
    const second = await client.post(cleo, { room: 'names', text: 'd', handle: 'other' })
    expect(second).toMatchObject({ status: 200, data: { handle_not_applied: 'already_has_handle' } })
    const registered = await client.command(eve, { operation: 'identity.register', handle: 'eve' })
    expect(registered.data.identity).toMatchObject({ id: eve.id, handle: 'eve', events: 0 })
    const late = await client.command(dan, { operation: 'identity.register', handle: 'eve' })
    expect(late).toMatchObject({ status: 400, code: 'name_taken' })
    const { identities } = (await client.get('/api/identities?query=c')).data
    expect(identities?.map(({ id, handle, events }) => [id, handle, events])).toEqual([[cleo.id, 'cleo', 3]])
    for (const target of ['cleo', cleo.id, cleo.publicKey]) {
      const found = await client.send(JSON.stringify({ operation: 'identity.get', target }))
      expect(found.data.identity).toMatchObject({ id: cleo.id })
    }
  })

  describe('in a room of 130 events', () => {
    const posted: EventJson[] = []

    beforeAll(async () => {
      for (let n = 0; n < 130; n += 1) {
        const [signer, page, kind] = [
          n % 3 === 0 ? ada : bob,
          n % 2 === 0 ? 'even' : 'odd',
          n % 5 === 0 ? 'five' : 'note',
        ]
        const reply = n % 13 === 5 ? { reply_to: posted[5]?.event_id ?? '' } : {}
        posted.push((await client.post(signer, { room: 'long', page, kind, text: `${n}`, ...reply })).data.event!)
      }
    })

    const ids = (events: readonly EventJson[] | undefined) => events?.map(({ event_id }) => event_id)

    test.each([
      ['', () => true],
      ['&page=odd', ({ page }) => page === 'odd'],
      ['&kind=five', ({ kind }) => kind === 'five'],
      [`&author=${ada.id}`, ({ author }) => author.id === ada.id],
      [
        `&page=even&kind=five&author=${bob.id}`,
        (e) => e.page === 'even' && e.kind === 'five' && e.author.id === bob.id,
      ],
      ['&before=40', ({ seq }) => seq < 40],
      ['&after=100', ({ seq }) => seq > 100],
      ['&after=20&before=60&page=odd', ({ seq, page }) => seq > 20 && seq < 60 && page === 'odd'],
      ['&page=none', () => false],
    ] as [string, (event: EventJson) => boolean][])(
      'the list with "%s" has the same content whatever its page size',
      async (filter, keep) => {
        const expected = posted.filter(keep)
        for (const limit of [7, 50, 200]) {
          const path = `/api/events?room=long&limit=${limit}${filter}`
          const down = await walkPages(client, path)
          expect(ids(down.flatMap(({ data }) => data.events ?? []))).toEqual(ids(expected.toReversed()))
          const up = await walkPages(client, `${path}&order=asc`)
          expect(ids(up.flatMap(({ data }) => data.events ?? []))).toEqual(ids(expected))
          for (const { data } of [...down, ...up]) expect(data.has_more).toBe(data.next_cursor !== undefined)
        }
      },
    )

    test('threads, rooms, identities and pages can be paged to their end', async () => {
      const thread = await walkPages(client, `/api/thread/${posted[18]!.event_id}?limit=3`)
      const inThread = posted.filter(({ thread: root }) => root === posted[5]!.event_id)
      expect(inThread.length).toBe(10)
      expect(ids(thread.flatMap(({ data }) => data.events ?? []))).toEqual(ids(inThread))
      const names = async (path: string) =>
        (await walkPages(client, path)).flatMap(
          ({ data }) =>
            (data.rooms ?? data.pages ?? data.identities ?? []) as readonly { name?: string; id?: string }[],
        )
      for (const path of ['/api/rooms', '/api/identities', '/api/pages?room=long']) {
        const and = path.includes('?') ? '&' : '?'
        expect(await names(`${path}${and}limit=1`)).toEqual(await names(`${path}${and}limit=200`))
      }
    })

    test('a post during the paging of a list neither duplicates nor hides older items', async () => {
      const first = (await client.get('/api/events?room=long&limit=10')).data
      const added = (await client.post(ada, { room: 'long', text: 'while walking' })).data.event!
      const second = (await client.get(`/api/events?room=long&limit=10&cursor=${first.next_cursor}`)).data
      expect(ids(second.events)).toEqual(ids(posted.slice(-20, -10).toReversed()))
      posted.push(added)
    })

    test('a cursor that is forged, changed, truncated or from another list is refused', async () => {
      const cursor = (await client.get('/api/events?room=long&limit=10')).data.next_cursor!
      const bytes = Buffer.from(cursor, 'base64url')
      const flipped = Buffer.from(bytes)
      flipped[flipped.length >> 1]! ^= 1
      const wrong = [
        `/api/events?room=long&limit=10&cursor=${flipped.toString('base64url')}`,
        `/api/events?room=long&limit=10&cursor=${bytes.subarray(0, -1).toString('base64url')}`,
        `/api/events?room=long&limit=10&cursor=${Buffer.alloc(40).toString('base64url')}`,
        `/api/events?room=long&limit=10&cursor=`,
        `/api/events?room=long&limit=10&order=asc&cursor=${cursor}`,
        `/api/events?room=dock&limit=10&cursor=${cursor}`,
        `/api/events?limit=10&cursor=${cursor}`,
        `/api/thread/${posted[0]!.event_id}?cursor=${cursor}`,
        `/api/rooms?cursor=${cursor}`,
        `/api/identities?cursor=${cursor}`,
        `/api/pages?room=long&cursor=${cursor}`,
        `/v1/export?cursor=${cursor}`,
      ]
      for (const path of wrong)
        expect([path, await client.get(path)]).toMatchObject([
          path,
          { status: 400, code: 'invalid_field', field: 'cursor' },
        ])
    })

    test('a limit outside 1 to 200, an unknown parameter and a bad filter are refused by name', async () => {
      for (const limit of ['0', '201', '-1', '1.5', '1e2', '', '01']) {
        expect(await client.get(`/api/events?limit=${limit}`)).toMatchObject({ status: 400, field: 'limit' })
      }
      expect(await client.get('/api/events?size=3')).toMatchObject({
        status: 400,
        code: 'unknown_field',
        field: 'size',
      })
      expect(await client.get('/api/events?before=3')).toMatchObject({
        status: 400,
        code: 'missing_field',
        field: 'room',
      })
      expect(await client.get('/api/events?room=Nope')).toMatchObject({
        status: 400,
        code: 'invalid_field',
        field: 'room',
      })
      expect(await client.get('/api/events?room=nope')).toMatchObject({ status: 400, code: 'not_found' })
      expect(await client.get('/api/pages')).toMatchObject({ status: 400, code: 'missing_field', field: 'room' })
      expect(await client.get(`/api/events/${'0'.repeat(32)}`)).toMatchObject({ status: 400, code: 'not_found' })
      expect(await client.get('/api/events/xyz')).toMatchObject({ status: 400, code: 'invalid_field' })
    })
  })
})
