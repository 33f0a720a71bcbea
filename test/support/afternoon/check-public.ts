/** What everybody can see: the order of everything, counts, the export, proofs; and that nothing private is in any of it. */
import { expect } from 'vitest'
import { splitLines } from '../../../src/cli/lines.ts'
import { verifyExport } from '../../../src/cli/verify-export.ts'
import { verifyProofJson } from '../../../src/cli/verify-proof.ts'
import { readOnThisThread } from '../../../src/export-check/readers.ts'
import type { VerifierKey } from '../../../storage/note.ts'
import type { Json } from '../answers.ts'
import type { EventJson, ProofJson } from '../client.ts'
import { checkPayload, roomShape } from './check-rooms.ts'
import { checkTimes } from './history.ts'
import { type Model, shape } from './model.ts'
import {
  canary,
  everybody,
  isSecretive,
  people,
  privateRooms,
  receiverRoom,
  rooms,
  stranger,
} from './people-and-rooms.ts'
import type { RestartingBoard } from './restarting-board.ts'
import { each, type QueryFields, same, Views } from './views.ts'

/** Returns every text that a stranger was shown. */
export async function checkPublic(restartingBoard: RestartingBoard, model: Model, key: VerifierKey): Promise<string[]> {
  const texts: string[] = []
  const nobody = new Views(restartingBoard.client, undefined, texts)
  await checkOrder(nobody, model)
  await checkCounts(nobody, model)
  await checkExport(nobody, model, key)
  await checkProofs(nobody, model, key)
  return texts
}

async function checkOrder(nobody: Views, model: Model): Promise<void> {
  const all = model.publicVersions()
  checkTimes(all, 'the order of everything public')
  const visible = all.filter((posted) => posted.original === undefined && model.removalOf(posted) === undefined)
  const isOurs = ({ room }: EventJson) => room !== receiverRoom.name
  const found = (await nobody.listByGet<EventJson>('/api/events?order=asc', 'events')).filter(isOurs)
  same(
    '/api/events',
    found.map(shape),
    visible.map((posted) => model.item(posted)),
  )
  const back = (await nobody.list<EventJson>('events.list', 'events', { limit: 173 })).filter(isOurs)
  same(
    'events.list',
    back.reverse().map(shape),
    visible.map((posted) => model.item(posted)),
  )
  await each(everybody, async (who) => {
    const own = visible.filter(({ by }) => by === who)
    const { status, data } = await nobody.answer('identity.get', { target: people[who]!.id })
    // An identity that has done nothing in public is unknown there, and one that posts in public is known.
    if (status !== 200) return same(`identity ${who}`, own, [])
    same(`identity ${who}`, [data.identity!.id, isSecretive(who)], [people[who]!.id, false])
    const events = await nobody.list<EventJson>('identity.events', 'events', { target: people[who]!.id })
    same(
      `events of ${who}`,
      events.reverse().map(({ event_id }) => event_id),
      own.map(({ id }) => id),
    )
  })
}

/** A text is found by its unique word while it is shown, by nobody when it is gone, and a private one only in its room. */
export async function checkSearch({ client }: RestartingBoard, model: Model): Promise<void> {
  const all = rooms.flatMap(({ name }) => model.originals(name)).filter((_, n) => n % 11 === 0)
  await each(all, async (posted) => {
    const newest = model.history.newest(posted)
    const word = /mk[0-9]+q/.exec(newest.text)?.[0]
    if (word === undefined) return
    const isShown = model.removalOf(posted) === undefined
    const { name, isPrivate, owner } = posted.room
    const search = async (who: number | undefined, fields: QueryFields) =>
      (await new Views(client, who).list<EventJson>('events.list', 'events', { query: word, ...fields })).map(
        ({ event_id }) => event_id,
      )
    const found = isShown ? [posted.id] : []
    same(`search of ${word} by ${stranger}`, await search(stranger, {}), isPrivate ? [] : found)
    same(`search of ${word} in ${name}`, await search(isPrivate ? owner! : undefined, { room: name }), found)
  })
}

/** Rooms that exist from the first start. */
const ofTheBoard: ReadonlySet<string> = new Set(['lobby', 'reviews'])

async function checkCounts(nobody: Views, model: Model): Promise<void> {
  type Listed = Parameters<typeof roomShape>[0]
  const listed = await nobody.listByGet<Listed>('/api/rooms?', 'rooms')
  const open = rooms.filter((room) => !room.isPrivate && room !== receiverRoom)
  const expected = open.map((room) => {
    const { name, owner } = room
    const members = model.history.members.get(name)!.size + (owner === undefined ? 0 : 1)
    const view = { name, visibility: 'public', ...(owner === undefined ? {} : { owner: people[owner]!.id }), members }
    return roomShape({ ...view, ...model.counts(name) })
  })
  const byName = (list: readonly unknown[]) => list.map((one) => JSON.stringify(one)).sort()
  const found = listed.filter(({ name }) => name !== receiverRoom.name && !ofTheBoard.has(name)).map(roomShape)
  same('/api/rooms', byName(found), byName(expected))
  const summary = await nobody.ask('room.get', { room: receiverRoom.name })
  const { stats } = (await nobody.client.get('/api/stats')).data
  const events = model.publicVersions().length + (summary.room as { count: number }).count
  expect(stats).toMatchObject({ rooms: open.length + 1 + ofTheBoard.size, events })
  const openDocs = model.history.docs.filter(({ room }) => room?.isPrivate === false).length
  expect(stats).toMatchObject({ documents: openDocs, blobs: 0 })
}

type Line = EventJson & { readonly command_sha256: string }

async function checkExport(nobody: Views, model: Model, key: VerifierKey): Promise<void> {
  const { status, text } = await nobody.client.get('/v1/export')
  expect(status).toBe(200)
  nobody.texts!.push(text)
  const report = await verifyExport({
    lines: splitLines(
      (async function* () {
        yield Buffer.from(text)
      })(),
    ),
    reader: readOnThisThread(),
    logKey: key,
    progress: () => {},
  })
  expect(report).toMatchObject({ failures: 0, hasEnd: true, isSignedByLog: true })
  const lines = text.trimEnd().split('\n')
  const events = lines
    .map((line) => JSON.parse(line) as Line)
    .filter(({ type, room }) => ['event', 'tombstone'].includes(type) && room !== receiverRoom.name)
  const byPlace = events.sort((a, b) => a.log.index! - b.log.index!)
  const expected = model.publicVersions().filter(({ room }) => room.isArchived)
  same(
    'export',
    byPlace.map((line) => [shape(line), line.command_sha256]),
    expected.map((posted) => [model.version(posted), posted.sha256]),
  )
  byPlace.forEach((line, n) => {
    checkPayload(model, expected[n]!, line)
  })
}

/** Every acknowledged post is in the log; if its text is gone its signed bytes are not. */
async function checkProofs(nobody: Views, model: Model, key: VerifierKey): Promise<void> {
  await each(model.publicVersions(), async (posted) => {
    const answer = await nobody.client.get(`/api/log/proof?message=${posted.id}`)
    if (answer.status !== 200) throw new Error(`no proof of ${posted.id}: ${answer.text}`)
    nobody.texts!.push(answer.text)
    const facts = verifyProofJson(answer.data as Json, key)
    const { entry } = answer.data as ProofJson
    nobody.texts!.push(Buffer.from(entry, 'base64').toString())
    const hasBytes = model.removalOf(posted) === undefined
    const told = [facts.eventId, facts.index, facts.hasSignedBytes]
    same(`proof of ${posted.id}`, told, [posted.id, posted.leaf, hasBytes])
  })
}

/** Reads everything as a stranger and unsigned: the canary word appears nowhere, and private things are not revealed to exist. */
export async function checkSecrecy(restartingBoard: RestartingBoard, model: Model, texts: string[]): Promise<void> {
  const { client } = restartingBoard
  const nobody = new Views(client, undefined, texts)
  const other = new Views(client, stranger, texts)
  for (const path of ['/', '/capabilities', '/metrics', '/api/stats', '/api/log/checkpoint', '/checkpoint', '/healthz'])
    texts.push((await client.get(path)).text)
  for (const reader of [nobody, other]) {
    await reader.list('events.list', 'events')
    await reader.list('rooms.list', 'rooms')
    await reader.list('identities.list', 'identities')
    await reader.list('docs.list', 'docs')
    await changesOf(reader)
    await reader.answer('rooms.list', { query: 'den' })
    await reader.answer('events.list', { query: 'den' })
  }
  for (const [operation, name] of [
    ['inbox.get', 'items'],
    ['conversations.list', 'conversations'],
    ['receiver.list', 'receivers'],
    ['receiver.items', 'items'],
  ] as const)
    await other.list(operation, name)
  const { tree_size } = (await nobody.ask('log.checkpoint')) as { tree_size: number }
  for (let start = 0; start < tree_size; start += 256) {
    const data = JSON.stringify({ schema: 1, start, end: Math.min(tree_size, start + 256) })
    const answer = await nobody.ask('log.leaves', { data })
    for (const entry of Object.values(answer).flat()) texts.push(Buffer.from(String(entry), 'base64').toString())
  }
  await checkClosed(nobody, other, model)
  for (const text of texts) {
    const at = text.indexOf(canary)
    if (at >= 0) throw new Error(`the canary sings: ${text.slice(Math.max(0, at - 300), at + 300)}`)
  }
}

/** Every correction, in the order of changes. */
async function changesOf(reader: Views): Promise<Json[]> {
  const found: Json[] = []
  let [after, isMore] = [0, true]
  while (isMore) {
    const page = await reader.ask('changes.list', { limit: 200, data: JSON.stringify({ schema: 1, after }) })
    found.push(...(page.changes as Json[]))
    after = page.after as number
    isMore = page.has_more as boolean
  }
  return found
}

/** A request for anything private is refused. The refusal names what was requested, and nothing else. */
async function checkClosed(nobody: Views, other: Views, { history }: Model): Promise<void> {
  for (const reader of [nobody, other]) {
    const plain = new Views(reader.client, reader.who)
    for (const { name, guests } of privateRooms) {
      const posted = history.byRoom.get(name)!.at(-1)!
      const readers = [
        plain,
        ...guests.filter((who) => !history.members.get(name)!.has(who)).map((who) => new Views(plain.client, who)),
      ]
      for (const each of readers) {
        for (const [operation, fields] of [
          ['room.get', { room: name }],
          ['room.pages', { room: name }],
          ['room.members', { room: name }],
          ['room.modlog', { room: name }],
          ['events.list', { room: name }],
          ['docs.list', { room: name }],
          ['room.read_token', { room: name }],
          ['updates.get', { data: JSON.stringify({ schema: 1, wait: 0, rooms: [name] }) }],
          ['event.get', { event_id: posted.id }],
          ['thread.get', { event_id: posted.id }],
          ['event.history', { event_id: posted.id }],
        ] as const) {
          const { status, code, text } = await each.answer(operation, fields)
          // Some reads cannot be unsigned: they say so before they look at the room.
          const mustSign = operation === 'room.read_token' && each.who === undefined
          same(`${operation} in ${name}`, [status, code], [403, mustSign ? 'unsigned' : 'private_room'])
          same(`${operation} in ${name}`, [text.replaceAll(name, '').includes(canary)], [false])
        }
      }
      for (const path of [
        `/api/log/proof?message=${posted.id}`,
        `/tail/${name}`,
        `/api/events?room=${name}`,
        `/v1/export?room=${name}`,
      ]) {
        const { status, text } = await plain.client.get(path)
        same(path, [status >= 400, text.replaceAll(name, '').includes(canary)], [true, false])
      }
    }
  }
}
