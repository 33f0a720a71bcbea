/**
 * An answer as a model reads it: without proofs and, in a list, without what its items repeat. Nothing else is lost: an item of a list is
 * `shared` with the item laid over it, and `people` has the identity id behind each short name. A person who is mentioned once is not in
 * `people`: their handle appears instead. It is unique, never changes, and is accepted wherever an id is (identity.get returns the id).
 * Without a handle, the id itself appears.
 */
import type { Operation } from '../../actors/kernel/operation.ts'
import type { Json } from '../format/plain-schema.ts'

/** Members that prove what is next to them. */
const proofNames: ReadonlySet<string> = new Set(['signature', 'signed_payload', 'command_sha256'])
/** The signed head in a receipt, which log.proof returns too. */
const headNames: ReadonlySet<string> = new Set(['checkpoint', 'tree_size'])
const receipts: ReadonlySet<unknown> = new Set(['Receipt', 'CallReceipt'])
const people: ReadonlySet<unknown> = new Set(['Person', 'Party'])
/** What an item itself says: never shared, even if all say the same. */
const ownWords: ReadonlySet<string> = new Set(['text', 'title', 'name', 'description', 'body'])
/** Fewer items than this repeat little. */
const sharedFrom = 3
/** Hex characters of an identity id that represent a person without a handle; more if two begin alike. */
const shortId = 8

type Answers = Pick<Operation, 'optional' | 'result'>

export function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The list in the answer of a paging operation; undefined if it has none. */
export function listOf({ optional, result }: Answers): string | undefined {
  if (!optional.includes('limit') || !isObject(result.properties)) return undefined
  // Members next to the items are declared before them.
  return Object.entries(result.properties).findLast(([, member]) => isObject(member) && member.type === 'array')?.[0]
}

/** Whether the answer contains any proof. `schema`: of the answer. */
export function hasProof(schema: unknown): boolean {
  if (Array.isArray(schema)) return schema.some(hasProof)
  if (!isObject(schema)) return false
  const { properties } = schema
  const isNamed = isObject(properties) && Object.keys(properties).some((name) => proofNames.has(name))
  return isNamed || Object.values(schema).some(hasProof)
}

export function brief(data: Json, operation: Answers): Json {
  const bare = shaped(data, operation.result, withoutProof) as Json
  const list = listOf(operation)
  const items = list === undefined ? undefined : bare[list]
  if (list === undefined || !Array.isArray(items) || items.length < sharedFrom || !items.every(isObject)) return bare
  const names = new Names(mentionsIn(bare, operation.result))
  const named = shaped(bare, operation.result, (member) => inList(member, names)) as Json
  const { shared, rest } = share(named[list] as readonly Json[])
  const { [list]: _, ...around } = bare
  return {
    ...around,
    ...(Object.keys(shared).length === 0 ? {} : { shared }),
    ...(names.isEmpty ? {} : { people: names.ids }),
    [list]: rest,
  }
}

/** A member of an answer, and the object that contains it. */
type Member = {
  readonly name: string
  readonly value: unknown
  readonly schema: Json
  readonly of: Json
  readonly ofSchema: Json
}

const leftOut = Symbol('left out')

/** The value with its declared members changed. Undeclared content, such as what others answered, is not examined. */
function shaped(value: unknown, schema: unknown, change: (member: Member) => unknown): unknown {
  if (!isObject(schema)) return value
  if (Array.isArray(value)) return value.map((each) => shaped(each, schema.items, change))
  const { properties } = schema
  if (!isObject(value) || !isObject(properties)) return value
  const members = Object.entries(value).map(([name, member]): readonly [string, unknown] => {
    const declared = properties[name]
    if (!isObject(declared)) return [name, member]
    const changed = change({ name, value: member, schema: declared, of: value, ofSchema: schema })
    return [name, changed === member ? shaped(member, declared, change) : changed]
  })
  return Object.fromEntries(members.filter(([, member]) => member !== leftOut))
}

function withoutProof({ name, value, schema, ofSchema }: Member): unknown {
  const isProof =
    proofNames.has(name) ||
    schema.title === 'DelegationProof' ||
    (name === 'public_key' && people.has(ofSchema.title)) ||
    (headNames.has(name) && receipts.has(ofSchema.title))
  return isProof ? leftOut : value
}

/**
 * Leaves out a thread that is the event itself or the event it replies to. Also leaves out an event's place in the log, which log.proof
 * returns, and its number in the room, which event.get returns and no operation takes.
 */
function inList({ name, value, schema, of, ofSchema }: Member, names: Names): unknown {
  const isSaid = name === 'thread' && (value === of.event_id || value === of.reply_to)
  const isPlace = name === 'seq' && ofSchema.title === 'Event'
  if (isSaid || isPlace || schema.title === 'LogState') return leftOut
  if (isObject(value) && people.has(schema.title)) return names.of(value)
  return typeof value === 'string' && !ownWords.has(name) ? names.known(value) : value
}

/** How often each text occurs in an answer as a person or as a person's id. */
function mentionsIn(data: Json, schema: unknown): ReadonlyMap<string, number> {
  const mentions = new Map<string, number>()
  shaped(data, schema, ({ name, value, schema: declared }) => {
    const isPerson = isObject(value) && people.has(declared.title)
    if (isPerson || (typeof value === 'string' && !ownWords.has(name))) {
      const text = String(isPerson ? value.id : value)
      mentions.set(text, (mentions.get(text) ?? 0) + 1)
    }
    return isPerson ? leftOut : value
  })
  return mentions
}

/** Short names for the people of one list. */
class Names {
  readonly #names = new Map<string, string>()
  readonly #mentions: ReadonlyMap<string, number>

  constructor(mentions: ReadonlyMap<string, number>) {
    this.#mentions = mentions
  }

  get isEmpty(): boolean {
    return this.#names.size === 0
  }

  /** Identity ids by short name. */
  get ids(): Json {
    return Object.fromEntries([...this.#names].map(([id, name]) => [name, id]))
  }

  of({ id, handle }: Json): string {
    const key = String(id)
    const known = this.#names.get(key)
    if (known !== undefined) return known
    // An entry in `people` would cost more than it saves.
    if (this.#mentions.get(key) === 1) return handle === undefined ? key : `@${handle}`
    const taken = new Set(this.#names.values())
    let name = handle === undefined ? '' : `@${handle}`
    for (let length = shortId; name === '' || taken.has(name); length++) name = `${key.slice(0, length)}…`
    this.#names.set(key, name)
    return name
  }

  /** The short name for the id of a known person. */
  known(text: string): string {
    return this.#names.get(text) ?? text
  }
}

/** Moves values that more than half of the items have into `shared`; an item that lacks a member has the shared value. */
function share(items: readonly Json[]): { readonly shared: Json; readonly rest: readonly Json[] } {
  const shared = new Map<string, unknown>()
  const rest = items.map((item) => new Map(Object.entries(item)))
  for (const name of Object.keys(items[0]!)) {
    if (ownWords.has(name) || !items.every((item) => Object.hasOwn(item, name))) continue
    const members = items.map((item) => item[name])
    const texts = members.map((member) => JSON.stringify(member))
    const common = mostCommon(texts)
    if (common !== undefined) {
      shared.set(name, members[texts.indexOf(common)])
      for (const [n, text] of texts.entries()) if (text === common) rest[n]!.delete(name)
    } else if (members.every(isObject)) {
      const within = share(members)
      if (Object.keys(within.shared).length === 0) continue
      shared.set(name, within.shared)
      for (const [n, member] of within.rest.entries()) rest[n]!.set(name, member)
    }
  }
  return { shared: Object.fromEntries(shared), rest: rest.map((item) => Object.fromEntries(item)) }
}

/** The text that more than half of them are (Boyer-Moore majority vote). */
function mostCommon(texts: readonly string[]): string | undefined {
  let found = ''
  let lead = 0
  for (const text of texts) {
    if (lead === 0) found = text
    lead += text === found ? 1 : -1
  }
  return texts.filter((text) => text === found).length * 2 > texts.length ? found : undefined
}
