/**
 * What a good engineer writes in an afternoon: fastify, better-sqlite3 with WAL and `synchronous=FULL`, one thread.
 *
 *   node sqlite-stack.ts FILE request a transaction for each request, signatures by node:crypto
 *   node sqlite-stack.ts FILE turn one transaction for all requests of a turn of the event loop, libsodium
 *
 * It accepts the commands that the client signs for a board, on the paths of a board, so that one client can use both.
 */
import { createPublicKey, hash, verify } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { createRequire } from 'node:module'

type Command = Readonly<Record<string, string | number>> & { readonly room: string; readonly public_key: string }
type Row = { readonly seq: number; readonly id: string; readonly thread: string; readonly body: string }
type Statement = { run(...values: unknown[]): { lastInsertRowid: number }; get(...values: unknown[]): Row | undefined }
type Reading = { all(...values: unknown[]): Row[]; iterate(...values: unknown[]): IterableIterator<Row> }
type Database = {
  pragma(text: string): void
  exec(text: string): void
  prepare(text: string): Statement & Reading
  transaction<Given>(work: (given: Given) => void): (given: Given) => void
}
type Request = {
  body: Command & { signature: string }
  params: { id: string; room: string }
  query: { room: string; limit: string }
}
type Reply = {
  code(status: number): Reply
  send(body: unknown): Reply
  type(name: string): Reply
  hijack(): void
  raw: ServerResponse
}
type Handler = (request: Request, reply: Reply) => unknown
type App = {
  get(path: string, handler: Handler): void
  post(path: string, handler: Handler): void
  listen(where: { port: number; host: string }): Promise<string>
}

const load = createRequire(import.meta.url)
const sodium = load('sodium-native') as { crypto_sign_verify_detached(s: Buffer, m: Buffer, key: Buffer): boolean }
const [, , file = ':memory:', mode = 'turn'] = process.argv

const database = new (load('better-sqlite3') as new (file: string) => Database)(file)
database.pragma('journal_mode = WAL')
database.pragma('synchronous = FULL')
database.exec(`
  CREATE TABLE events (seq INTEGER PRIMARY KEY, id TEXT UNIQUE, room TEXT, thread TEXT, author TEXT, body TEXT);
  CREATE INDEX by_room ON events (room, seq);
  CREATE INDEX by_thread ON events (thread, seq);
`)
const insert = database.prepare('INSERT INTO events (id, room, thread, author, body) VALUES (?, ?, ?, ?, ?)')
const byId = database.prepare('SELECT seq, id, thread, body FROM events WHERE id = ?')
const ofRoom = database.prepare('SELECT seq, id, thread, body FROM events WHERE room = ? ORDER BY seq DESC LIMIT ?')
const ofThread = database.prepare('SELECT seq, id, thread, body FROM events WHERE thread = ? ORDER BY seq LIMIT ?')
const everything = database.prepare('SELECT seq, id, thread, body FROM events ORDER BY seq')

type Post = {
  readonly id: string
  readonly command: Command
  readonly body: string
  readonly reply: Reply
  answer: string
}

const eventOf = ({ seq, id, thread, body }: Row) =>
  `{"event_id":"${id}","seq":${seq},"thread":"${thread}",${body.slice(1)}`

function store(post: Post): void {
  const { id, command, body } = post
  const known = byId.get(id)
  const parent = typeof command.reply_to === 'string' ? byId.get(command.reply_to) : undefined
  const thread = parent?.thread ?? id
  const seq = known?.seq ?? insert.run(id, command.room, thread, command.public_key, body).lastInsertRowid
  post.answer = `{"ok":true,"data":{"event":${eventOf({ seq, id, thread, body })}}}`
}

const storeAll = database.transaction((posts: readonly Post[]) => {
  for (const post of posts) store(post)
})

const tails = new Map<string, Set<ServerResponse>>()

function commit(posts: readonly Post[]): void {
  storeAll(posts)
  for (const { reply, command, answer } of posts) {
    reply.type('application/json').send(answer)
    for (const tail of tails.get(command.room) ?? []) tail.write(`${answer}\n`)
  }
}

const spki = Buffer.from('302a300506032b6570032100', 'hex')

function isGood(signature: Buffer, message: Buffer, key: Buffer): boolean {
  if (signature.length !== 64 || key.length !== 32) return false
  if (mode === 'turn') return sodium.crypto_sign_verify_detached(signature, message, key)
  const known = createPublicKey({ key: Buffer.concat([spki, key]), format: 'der', type: 'spki' })
  return verify(undefined, message, known, signature)
}

let waiting: Post[] = []

function commitWaiting(): void {
  const posts = waiting
  waiting = []
  commit(posts)
}

const app = (load('fastify') as () => App)()

app.post('/v1/command', (request, reply) => {
  const { signature, ...command } = request.body
  const message = Buffer.from(JSON.stringify({ version: 1, service: process.env.SERVICE_ID, command }))
  if (!isGood(Buffer.from(signature, 'base64url'), message, Buffer.from(command.public_key, 'base64url')))
    return reply.code(400).send({ ok: false })
  const id = hash('sha256', message, 'hex').slice(0, 32)
  const post = { id, command: command as Command, body: JSON.stringify(request.body), reply, answer: '' }
  if (mode === 'request') commit([post])
  else if (waiting.push(post) === 1) setImmediate(commitWaiting)
  return reply
})

const page = (reply: Reply, rows: readonly Row[]) =>
  reply.type('application/json').send(`{"ok":true,"data":{"events":[${rows.map(eventOf).join()}]}}`)

app.get('/api/events', ({ query }, reply) => page(reply, ofRoom.all(query.room, Number(query.limit))))
app.get('/api/thread/:id', ({ params }, reply) => {
  const root = byId.get(params.id)
  return root === undefined ? reply.code(404).send({ ok: false }) : page(reply, ofThread.all(root.thread, 200))
})

app.get('/v1/export', (_, reply) => {
  reply.hijack()
  const { raw } = reply
  const rows = everything.iterate()
  raw.writeHead(200, { 'content-type': 'application/x-ndjson' })
  const more = (): void => {
    for (;;) {
      let lines = ''
      while (lines.length < 65_536) {
        const { value, done } = rows.next()
        if (done === true) return void raw.end(lines)
        lines += `${eventOf(value)}\n`
      }
      if (!raw.write(lines)) return void raw.once('drain', more)
    }
  }
  more()
})

app.get('/tail/:room', ({ params }, reply) => {
  reply.hijack()
  const { raw } = reply
  raw.writeHead(200, { 'content-type': 'application/x-ndjson' })
  raw.write('\n')
  const room = tails.get(params.room) ?? new Set()
  tails.set(params.room, room.add(raw))
  raw.once('close', () => room.delete(raw))
})

console.log(await app.listen({ port: 0, host: '127.0.0.1' }))
