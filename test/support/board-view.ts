/**
 * Everything that a board answers about everything that was done on it, to everybody who is involved: so that two views of it can be
 * compared, before and after its files were rewritten.
 */
import { createHash } from 'node:crypto'
import { operations } from '../../actors/operations.ts'
import type { Signer } from '../../src/cli/sign.ts'
import { type Answer, Client, type Fields, type SignedCommand, type SigningOptions } from './client.ts'

/** A client that remembers who did what, and the result. */
export class RecordingClient extends Client {
  /** By public key. */
  readonly people = new Map<string, Signer>()
  /** Id or name -> public keys of those who received it. */
  readonly ids = new Map<string, Set<string>>()
  readonly rooms = new Map<string, Set<string>>()
  /** Commands that were accepted, with the answer. */
  readonly accepted: { readonly body: string; readonly answer: Answer }[] = []

  override sign(signer: Signer, fields: Fields, signing?: SigningOptions): SignedCommand {
    this.people.set(signer.publicKey, signer)
    return super.sign(signer, fields, signing)
  }

  override async send(body: string | Uint8Array, headers?: Readonly<Record<string, string>>): Promise<Answer> {
    const answer = await super.send(body, headers)
    if (answer.status !== 200) return answer
    const command = JSON.parse(String(body)) as { operation: string; public_key?: string; room?: string }
    const key = command.public_key ?? ''
    const isWrite = operations.some(({ name, kind }) => name === command.operation && kind !== 'read')
    if (isWrite) this.accepted.push({ body: String(body), answer })
    if (command.room !== undefined) note(this.rooms, command.room, key)
    for (const [, id] of answer.text.matchAll(/"([0-9a-f]{32})"/g)) note(this.ids, id!, key)
    for (const [, room] of answer.text.matchAll(/"room":"([^"]+)"/g)) note(this.rooms, room!, key)
    return answer
  }
}

function note(table: Map<string, Set<string>>, name: string, key: string): void {
  const known = table.get(name)
  if (known === undefined) table.set(name, new Set([key]))
  else known.add(key)
}

/** Reads about one thing, by the field that names it. */
const byEvent = ['event.get', 'event.history', 'thread.get', 'work.get', 'work.history']
const byTarget = ['docs.read', 'docs.history', 'blob.get', 'receiver.items', 'webhook.deliveries', 'tools.get']
const byRoom = ['room.get', 'room.members', 'room.policy.get', 'room.bans', 'room.modlog', 'room.pages', 'docs.list']
const lists = [
  ...['inbox.get', 'follows.list', 'mutes.list', 'conversations.list', 'delegation.list', 'docs.list', 'rooms.list'],
  ...['receiver.list', 'webhook.list', 'credit.balance', 'credit.history', 'events.list', 'work.list', 'threads.list'],
]
const paths = [
  ...['/v1/export', '/v1/export?stream=ledger', '/api/events?limit=200', '/api/rooms?limit=200', '/api/log/history'],
  ...['/api/identities?limit=200', '/api/works?limit=100', '/api/docs?limit=100', '/api/changes?after=0&limit=200'],
  ...[
    '/api/log/checkpoint',
    '/api/events?query=something',
    '/api/tools?limit=50',
    '/api/threads?limit=100',
    '/api/stats',
  ],
]

/** Who reads about one thing: this many of those who know of it, a stranger, and an unsigned client. */
const readersMax = 1

type Readers = { readonly operator: Signer; readonly stranger: Signer }

/**
 * By request and reader. `known`: what was done before; requests through another client do not change it. `most`: this many ids and
 * accepted commands are queried, spread over all of them.
 */
export async function viewBoard(
  client: Client,
  known: RecordingClient,
  { operator, stranger }: Readers,
  most = Number.POSITIVE_INFINITY,
): Promise<Map<string, string>> {
  const asks: [name: string, ask: () => Promise<Answer>][] = []
  const ask = (fields: Fields, who: Signer | undefined) => {
    const by = who === undefined ? 'nobody' : who.publicKey === stranger.publicKey ? 'a stranger' : who.id
    const send = () => (who === undefined ? client.send(JSON.stringify(fields)) : client.command(who, fields))
    asks.push([`${JSON.stringify(fields)} by ${by}`, send])
  }
  const knowers = (keys: ReadonlySet<string>) => [
    ...[...keys].slice(0, readersMax).flatMap((key) => known.people.get(key) ?? []),
    ...[stranger, undefined],
  ]
  for (const [id, keys] of spread([...known.ids], most))
    for (const who of new Set(knowers(keys))) {
      for (const operation of byEvent) ask({ operation, event_id: id }, who)
      for (const operation of byTarget) ask({ operation, target: id }, who)
    }
  for (const [room, keys] of known.rooms)
    for (const who of new Set([...knowers(keys), operator])) {
      for (const operation of byRoom) ask({ operation, room }, who)
      ask({ operation: 'events.list', room, limit: 200, data: '{"schema":1,"order":"asc"}' }, who)
      ask({ operation: 'work.list', room, limit: 100 }, who)
      ask({ operation: 'threads.list', room, limit: 100 }, who)
    }
  for (const who of [...known.people.values(), undefined]) {
    for (const operation of lists) ask({ operation }, who)
    for (const operation of ['docs.list', 'rooms.list'])
      ask({ operation, limit: 200, data: '{"schema":1,"own":true}' }, who)
  }
  for (const operation of ['reports.list', 'limits.list']) ask({ operation, limit: 200 }, operator)
  for (const path of paths) asks.push([path, () => client.get(path)])
  // Accepted commands are recognized, and have no second effect.
  for (const { body } of spread(known.accepted, most)) asks.push([`again ${body}`, () => client.send(body)])
  const view = new Map<string, string>()
  const next = asks[Symbol.iterator]()
  const worker = async (): Promise<void> => {
    for (const [name, send] of next) view.set(name, normalized(await send()))
  }
  await Promise.all(Array.from({ length: 16 }, worker))
  return view
}

function spread<Item>(items: readonly Item[], most: number): readonly Item[] {
  const step = Math.max(1, items.length / most)
  return items.filter((_, n) => Math.floor(n / step) > Math.floor((n - 1) / step))
}

/** What differs in each answer: cursors are sealed anew, the rest describes the process. */
const volatileFields = /^(.*cursor|token|built_at|checkpoint_at|duration_ms|uptime_seconds|streams_open)$/

/** A large export is represented by its hash. */
const answerMax = 1024 * 1024

function normalized({ status, text }: Answer): string {
  const lines = text.includes('\n') ? text.trimEnd().split('\n') : [text]
  const normalizedLines = lines.map((line) =>
    line.startsWith('{')
      ? JSON.stringify(JSON.parse(line), (key, value: unknown) => (volatileFields.test(key) ? undefined : value))
      : line,
  )
  const answer = `${status} ${normalizedLines.join('\n')}`
  return answer.length > answerMax ? createHash('sha256').update(answer).digest('hex') : answer
}

/** The first differences of two views, in readable form. */
export function differences(before: ReadonlyMap<string, string>, after: ReadonlyMap<string, string>): string[] {
  const names = new Set([...before.keys(), ...after.keys()])
  return [...names]
    .filter((name) => before.get(name) !== after.get(name))
    .map((name) => {
      const [a, b] = [before.get(name) ?? 'nothing', after.get(name) ?? 'nothing']
      const at = [...a].findIndex((_, n) => a[n] !== b[n])
      const from = Math.max(0, at - 60)
      return `${name}\n  before …${a.slice(from, at + 160)}\n  after  …${b.slice(from, at + 160)}`
    })
}
