/** Invariants of a board at rest, whatever happened to it: checked through its interface, and in its files. */

import { isDeepStrictEqual } from 'node:util'
import { codes } from '../../actors/works/market/ledger.ts'
import { splitLines } from '../../src/cli/lines.ts'
import { verifyExport } from '../../src/cli/verify-export.ts'
import type { PartReader } from '../../src/export-check/readers.ts'
import { checkBoard } from '../../src/fsck/fsck.ts'
import { CompactRange } from '../../storage/merkle.ts'
import { parseVkey } from '../../storage/note.ts'
import { walk } from '../support/answers.ts'
import { dataDirectory, markFile, must, type SimulatedBoard } from './board.ts'
import { type Model, type Post, type Reply, secretMark } from './model.ts'
import type { Fields, Person } from './people.ts'

/** Sends a request to the board, signed by `by`; unsigned without it. */
export type Ask = (fields: Fields, by?: Person) => Promise<Reply>

type CheckInput = {
  readonly board: SimulatedBoard
  readonly model: Model
  readonly ask: Ask
  /** Parses exports. */
  readonly reader: PartReader
}

type Line = {
  readonly type: string
  readonly event_id: string
  readonly room: string
  readonly seq: number
  readonly text?: string
  readonly reason?: string
  readonly supersedes?: string
  readonly author?: { readonly id: string }
  readonly hashes?: string
  readonly log?: { readonly index: number }
}

async function* one(bytes: Buffer): AsyncGenerator<Buffer> {
  yield bytes
}

async function verifyBytes(board: SimulatedBoard, reader: PartReader, bytes: Buffer, what: string) {
  const key = parseVkey(board.vkey)
  must(key.ok, 'the vkey of the log cannot be read')
  const report = await verifyExport({
    lines: splitLines(one(bytes)),
    reader,
    logKey: key.value,
    progress: () => {},
  })
  must(report.failures === 0, `the ${what} does not verify: ${report.first?.reason}`)
  must(report.hasEnd && report.isSignedByLog === true, `the ${what} has no signed end`)
  return report
}

/** Every size for which a head was ever shown has the root of the current leaves. */
function checkHeads(board: SimulatedBoard, leaves: Buffer): void {
  const range = new CompactRange()
  const into = Buffer.alloc(64 + 32 * 54)
  for (let size = 0; size <= leaves.length / 32; size++) {
    if (size > 0) range.append(leaves.subarray((size - 1) * 32, size * 32), into)
    const shown = board.heads.get(size)
    must(
      size === 0 || shown === undefined || shown === range.root().toString('base64'),
      'a head that was shown is not of this log',
    )
  }
  must(Math.max(0, ...board.heads.keys()) <= leaves.length / 32, 'a head of more entries was shown than the log has')
}

/** The export: everything in it was sent, appears once, as it was acknowledged; and everything acknowledged is in it. */
async function checkExport({ board, model, reader }: CheckInput): Promise<void> {
  const bytes = await board.exported()
  must(!bytes.includes(secretMark), 'something private is in the export')
  await verifyBytes(board, reader, bytes, 'export')
  const lines = linesOf(bytes)
  must(!lines.some(({ type }) => type === 'unreadable'), 'the export has a line that cannot be read')
  checkHeads(
    board,
    Buffer.concat(lines.map(({ type, hashes }) => Buffer.from(type === 'leaves' ? hashes! : '', 'base64'))),
  )
  const found = new Map<string, Line>()
  for (const line of lines) {
    if (line.type !== 'event' && line.type !== 'tombstone') continue
    // An event appears again if it was changed later, in its current state.
    found.set(line.event_id, line)
    if (line.author?.id === board.ownId) continue
    const sent = model.sent.get(line.event_id)
    must(sent !== undefined, 'the export has something nobody sent')
    const { error } = sent.reply ?? {}
    must(sent.standing === 'accepted', `the export has what was refused: ${sent.name}, ${error?.code}`)
  }
  const places = new Map<string, Set<number>>()
  for (const post of model.posts.values()) {
    if (model.isPrivate(post.room) || model.expiring.has(post.original)) continue
    const line = found.get(post.id)
    must(line !== undefined, 'an acknowledged post is not in the export')
    checkPost(line, post, model)
    if (post.original !== post.id) continue
    const seqs = places.get(post.room) ?? new Set()
    places.set(post.room, seqs)
    must(!seqs.has(post.seq), 'two posts of a room have one number')
    seqs.add(post.seq)
  }
}

function checkPost(line: Line, post: Post, model: Model): void {
  must(line.room === post.room && line.seq === post.seq, 'a post has moved')
  const leaf = model.sent.get(post.id)?.reply?.data?.receipt?.log_index
  must(
    leaf === undefined || line.log === undefined || line.log.index === leaf,
    'a post has another leaf than was acknowledged',
  )
  const isShown = line.type === 'event'
  must(!isShown || line.text === post.text, 'a post has a different text than was sent')
  must(!isShown || !model.redacted.has(post.original), 'a text is there that was redacted')
  if (!isShown) must(model.mayBeRemoved(post.id), 'a text is gone that nobody redacted')
}

/** With a damaged file: everything in the export and in tails is as it was acknowledged, or reported as unreadable. */
export async function checkReadable(board: SimulatedBoard, model: Model): Promise<void> {
  const posts = [...model.posts.values()].filter(
    ({ room, original }) => !model.isPrivate(room) && !model.expiring.has(original),
  )
  checkSurviving(linesOf(await board.exported()), posts, model, 'the export')
  for (const [room, own] of Map.groupBy(posts, (post) => post.room)) {
    const blocks = (await board.tailHistory(room)).split('\n\n').filter((block) => block !== '')
    const shown = blocks.map((block): Line => JSON.parse(block.slice(block.indexOf('data: ') + 'data: '.length)))
    checkSurviving(shown, own, model, 'a tail')
  }
}

function checkSurviving(lines: readonly Line[], posts: Iterable<Post>, model: Model, where: string): void {
  const found = new Map(lines.map((line) => [line.event_id, line]))
  let unreadable = 0
  for (const post of posts) {
    const line = found.get(post.id)
    must(line !== undefined, `an acknowledged post is missing from ${where} of a board with a damaged file`)
    if (line.type === 'unreadable' || line.reason?.startsWith('bytes on the disk') === true) unreadable++
    else checkPost(line, post, model)
  }
  // A bit is in one frame.
  must(unreadable <= 1, `one bit costs more of ${where} than the record that it is in`)
}

/** The log has a delegation before anything public that was done with it. */
async function checkDelegated(board: SimulatedBoard, { delegated }: Model): Promise<void> {
  if (delegated.size === 0) return
  const entries = await board.entries()
  const places = new Map(entries.map((entry, at) => [`${entry.get('kind')} ${entry.get('event')}`, at]))
  for (const [post, delegation] of delegated) {
    const [act, word] = [places.get(`post ${post}`), places.get(`delegate ${delegation}`)]
    must(act !== undefined, 'a post of a delegate has no entry in the log')
    must(word !== undefined && word < act, 'a delegate acts in public before its delegation is published')
  }
}

function linesOf(bytes: Buffer): Line[] {
  const text = bytes.toString().trimEnd()
  return text.split('\n').map((line) => JSON.parse(line) as Line)
}

type Posting = { readonly debit: string; readonly credit: string; readonly code: number; readonly amount: number }
type Balance = { readonly available: number; readonly held: number }

/** Credits: as many as were created, wherever they are. */
async function checkCredits({ board, model, ask, reader }: CheckInput): Promise<void> {
  const bytes = await board.exported('ledger')
  must(!bytes.includes(secretMark), 'something private is in the ledger')
  const { ledger } = await verifyBytes(board, reader, bytes, 'ledger')
  const supply = ledger?.supply ?? 0
  const text = bytes.toString().trimEnd()
  const made = (text === '' ? [] : text.split('\n'))
    .map((line) => JSON.parse(line) as Posting)
    .filter(({ debit }) => debit === 'mint')
  const welcomed = made.filter(({ code }) => code === codes.welcome).map(({ credit }) => credit)
  must(new Set(welcomed).size === welcomed.length, 'somebody was welcomed twice')
  const granted = made.filter(({ code, credit }) => code === codes.grant && credit !== 'rewards')
  const sumGranted = granted.reduce((all, { amount }) => all + amount, 0)
  must(sumGranted === model.minted, 'the credits created differ from the credits granted')
  let sum = 0
  for (const account of [...model.people.map(({ id }) => id), 'fees', 'rewards']) {
    const { ok, data } = await ask({ operation: 'credit.balance', target: account }, model.operator)
    must(ok, 'a balance query is refused')
    const { available, held } = data as unknown as Balance
    must(available >= 0 && held >= 0, 'somebody has a negative balance')
    sum += available + held
  }
  must(sum === supply, 'credits were lost or created')
}

const publicLists: readonly Fields[] = [
  { operation: 'rooms.list', limit: 100 },
  { operation: 'events.list', limit: 100 },
  { operation: 'threads.list', limit: 100 },
  { operation: 'work.list', limit: 100 },
  { operation: 'docs.list', limit: 100 },
  { operation: 'identities.list', limit: 100 },
  { operation: 'changes.list', limit: 100, data: '{"schema":1,"after":0}' },
  { operation: 'credit.history', target: 'mint' },
]

/** Nothing private is in any list, nor in the files of the public log. */
async function checkSecrets(board: SimulatedBoard, ask: Ask): Promise<void> {
  for (const fields of publicLists) {
    const answer = await ask(fields)
    must(answer.ok, `${fields.operation} is refused: ${answer.error?.code}`)
    must(!JSON.stringify(answer).includes(secretMark), `something private is in ${fields.operation}`)
  }
  for (const [name, { bytes }] of board.machine.memory.copy(`${dataDirectory}/log`))
    must(!bytes.includes(secretMark), `something private is in ${name}`)
}

/** Private rooms: everything acknowledged is there once, in the order of its numbers, for members. */
async function checkPrivate(model: Model, ask: Ask): Promise<void> {
  for (const { name, isPrivate, owner, everAllowed } of model.rooms.values()) {
    if (!isPrivate || owner === undefined) continue
    for (const by of everAllowed) {
      if (!model.suspended.has(by)) continue
      const { error } = await ask({ operation: 'events.list', room: name }, by)
      must(error?.code === 'suspended', 'a suspended identity reads a private room')
    }
    const reader = [owner, ...everAllowed].find((each) => !model.suspended.has(each))
    if (reader === undefined) continue
    const found = new Map<string, Line>()
    let after = 0
    for (;;) {
      const fields = {
        operation: 'events.list',
        room: name,
        limit: 100,
        data: JSON.stringify({ schema: 1, order: 'asc', after }),
      }
      const { ok, data } = await ask(fields, reader)
      // They may have left, and an owner may have transferred it.
      if (!ok) break
      const { events } = data as unknown as { events: readonly Line[] }
      for (const event of events) {
        must(!found.has(event.event_id) && event.seq > after, 'a private room lists an event twice')
        found.set(event.event_id, event)
        after = event.seq
      }
      if (events.length === 0) break
    }
    if (found.size === 0) continue
    for (const post of model.posts.values()) {
      if (post.room !== name || post.original !== post.id) continue
      const line = found.get(post.id)
      must(
        line !== undefined || model.mayBeRemoved(post.id) || model.mayMute(reader, post.by),
        'an acknowledged private post is gone',
      )
      must(line === undefined || line.seq === post.seq, 'a private post has moved')
    }
  }
}

const ownRooms: Fields = { operation: 'rooms.list', limit: 3, data: '{"schema":1,"own":true}' }

/** A person's own list has the rooms that they are in, with their role, and no others. */
async function checkOwnRooms(model: Model, ask: Ask): Promise<void> {
  for (const person of model.people) {
    const rooms = await walk('rooms', async (cursor) => {
      const { ok, error, data = {} } = await ask(cursor === undefined ? ownRooms : { ...ownRooms, cursor }, person)
      must(ok, `a list of one's own rooms is refused: ${error?.code}`)
      return data
    })
    const found = new Map(rooms.map(({ name, role }) => [String(name), String(role)]))
    must(found.size === rooms.length, "a list of one's own rooms has a room twice")
    const roles = model.rolesOf(person)
    for (const [name, possible] of roles) {
      if (!model.rooms.get(name)!.isPrivate || !model.everSuspended.has(person)) continue
      roles.set(name, new Set(['none', ...(model.suspended.has(person) ? [] : possible)]))
    }
    for (const name of new Set([...found.keys(), ...roles.keys()])) {
      const possible = roles.get(name) ?? new Set(['none'])
      const role = found.get(name) ?? 'none'
      must(possible.has(role), `somebody's own list has a room as ${role}, not as ${[...possible].join(' or ')}`)
    }
  }
}

/**
 * Names of fields that lead to the first difference; undefined: there is none. A cursor is sealed anew each time, and each box has built
 * its index of the tools directory at a different time.
 */
function differs(one: unknown, other: unknown): string | undefined {
  if (isDeepStrictEqual(one, other)) return undefined
  if (typeof one !== 'object' || typeof other !== 'object' || one === null || other === null) return ''
  for (const [name, value] of Object.entries({ ...other, ...one })) {
    const isOwn = (name.endsWith('cursor') || name === 'built_at') && typeof value === typeof Object(other)[name]
    if (isOwn) continue
    const found = differs(value, Object(other)[name])
    if (found !== undefined) return Array.isArray(one) ? found : `${name} ${found}`.trim()
  }
  return undefined
}

type BoardPair = {
  readonly model: Model
  readonly ask: Ask
  readonly askSecond: Ask
  readonly exported: () => Promise<Buffer>
  readonly exportedSecond: () => Promise<Buffer>
}

/** A follower of a board at rest that has everything answers as the board does. */
export async function compareBoards({ model, ask, askSecond, exported, exportedSecond }: BoardPair): Promise<void> {
  const alike = async (fields: Fields, by?: Person): Promise<void> => {
    const askBoth = async () => [await ask(fields, by), await askSecond(fields, by)] as const
    let [first, second] = await askBoth()
    // An event may have expired between the two.
    if (differs(first, second) !== undefined) [first, second] = await askBoth()
    const place = differs(first, second)
    must(place === undefined, `a follower answers ${fields.operation} otherwise than its leader: ${place}`)
    const { next_cursor: cursor } = Object(first.data)
    // A position in a list of the one is valid in that of the other.
    if (typeof cursor === 'string' && !('cursor' in fields)) await alike({ ...fields, cursor }, by)
  }
  for (const fields of publicLists) await alike(fields)
  for (const { name: room, isPrivate, everAllowed } of model.rooms.values())
    if (isPrivate) for (const by of everAllowed) await alike({ operation: 'events.list', room, limit: 100 }, by)
  for (const person of model.people) {
    await alike({ operation: 'credit.balance', target: person.id }, person)
    await alike({ operation: 'inbox.get', limit: 50 }, person)
    await alike(ownRooms, person)
  }
  for (const { id, subject } of model.tools.values()) {
    await alike({ operation: 'tools.get', target: id })
    if (subject !== undefined) await alike({ operation: 'tools.reviews', target: subject })
  }
  const lines = linesOf(await exported())
  for (const [at, line] of linesOf(await exportedSecond()).entries())
    must(
      differs(lines[at], line) === undefined,
      `a follower exports otherwise than its leader: ${line.type} ${differs(lines[at], line)}`,
    )
}

/** The handle and the profile of an erased identity are shown to nobody. */
async function checkErased({ erased }: Model, ask: Ask): Promise<void> {
  for (const { id } of erased) {
    const { ok, data } = await ask({ operation: 'identity.get', target: id })
    // An identity that never acted in public is not found.
    if (!ok) continue
    const { identity = {} } = Object(data)
    must(identity.erased === true, 'an erased identity is not shown as erased')
    must(!('handle' in identity || 'description' in identity), 'the handle or the profile of who was erased is shown')
  }
}

/** Everything that the log has signed follows from the files. */
export function checkFiles(board: SimulatedBoard): void {
  const found: string[] = []
  const { damages, refusals } = checkBoard({
    disk: board.machine.memory,
    path: dataDirectory,
    markFile,
    verify: undefined,
    onProgress: () => {},
    onFinding: ({ kind, what }) => {
      if (kind !== 'derived') found.push(what)
    },
  })
  must(damages + refusals === 0, `fsck finds damage: ${found[0]}`)
}

export async function checkAll(all: CheckInput): Promise<void> {
  const { board, model, ask } = all
  await checkExport(all)
  await checkDelegated(board, model)
  await checkCredits(all)
  await checkSecrets(board, ask)
  await checkPrivate(model, ask)
  await checkOwnRooms(model, ask)
  await checkErased(model, ask)
  checkFiles(board)
}
