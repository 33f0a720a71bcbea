/** What a model gets of an answer: nothing repeated, nothing lost except proofs, long texts in parts that make up the whole. */
import { createHash, randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { operationByName, operations } from '../../../actors/operations.ts'
import { toolResult } from '../../../src/mcp/answers.ts'
import { brief, listOf } from '../../../src/mcp/brief.ts'
import { extrasOf } from '../../../src/mcp/extra-inputs.ts'
import { inParts } from '../../../src/mcp/parts.ts'
import { tokensAtMost } from '../../../src/mcp/tokens.ts'

type Json = Record<string, unknown>
const declared = (name: string) => operationByName.get(name)!
const hex = (bytes: number) => randomBytes(bytes).toString('hex')

function event(author: Json, more: Json = {}): Json {
  const event_id = hex(16)
  return {
    type: 'event',
    event_id,
    author,
    text: 'said',
    thread: event_id,
    votes: { up: 0, down: 0, score: 0 },
    delegation: { id: hex(16), signed_payload: '{}', signature: 'S' },
    signature: 'S',
    log: { state: 'included', index: 7 },
    ...more,
  }
}

/** Reassembles an item as a reader of the answer does. */
function whole(shared: unknown, item: unknown): unknown {
  if (shared === undefined) return item
  if (item === undefined || typeof item !== 'object' || item === null || Array.isArray(item)) return item ?? shared
  const of = shared as Json
  const names = new Set([...Object.keys(of), ...Object.keys(item)])
  return Object.fromEntries([...names].map((name) => [name, whole(of[name], (item as Json)[name])]))
}

test('a list states common fields of its items once, and each item is complete when they are added back', () => {
  const [alice, bob] = [
    { id: hex(32), public_key: 'A', handle: 'alice' },
    { id: hex(32), public_key: 'B' },
  ]
  const root = event(alice)
  const events = [
    root,
    event(bob, { reply_to: root.event_id, thread: root.event_id }),
    event(alice, { to: bob.id, votes: { up: 1, down: 0, score: 1 } }),
    event(alice, { reply_to: hex(16), thread: root.event_id }),
  ]
  const shown = brief({ events, has_more: false }, declared('events.list'))
  expect(shown.shared).toEqual({ type: 'event', author: '@alice', votes: { up: 0, down: 0, score: 0 } })
  expect(shown.people).toEqual({ '@alice': alice.id, [`${bob.id.slice(0, 8)}…`]: bob.id })
  const people = shown.people as Record<string, string>
  const made = (shown.events as Json[]).map((item) => {
    const full = whole(shown.shared, item) as Json
    const id = people[String(full.author)]
    const to = people[String(full.to)]
    const thread = full.thread ?? full.reply_to ?? full.event_id
    return { ...full, author: id, thread, ...(to === undefined ? {} : { to }) }
  })
  const asked = events.map(({ signature: _, delegation: __, log: ___, author, ...rest }) => ({
    ...rest,
    author: (author as Json).id,
  }))
  expect(made).toEqual(asked)
})

test('text by users is shown as it was written, also where it is the id of an identity', () => {
  const author = { id: hex(32), public_key: 'A', handle: 'alice' }
  const events = [event(author), event(author), event(author, { text: author.id, to: author.id })]
  const { events: shown } = brief({ events, has_more: false }, declared('events.list'))
  expect((shown as Json[]).at(-1)).toMatchObject({ text: author.id, to: '@alice' })
})

test('an identity mentioned once is shown by handle, or by id without one, and is not in people', () => {
  const ids = Array.from({ length: 4 }, () => hex(32))
  const ada = { id: hex(32), public_key: 'K', handle: 'ada' }
  const events = [
    ...ids.map((id) => event({ id, public_key: 'K' })),
    event(ada),
    event({ id: hex(32) }, { to: ids[3] }),
  ]
  const { events: shown, people } = brief({ events, has_more: false }, declared('events.list'))
  const short = `${ids[3]!.slice(0, 8)}…`
  expect((shown as Json[]).slice(0, 5).map(({ author }) => author)).toEqual([...ids.slice(0, 3), short, '@ada'])
  expect(people).toEqual({ [short]: ids[3] })
})

test('an event in a list has no number in its room, which event.get gives', () => {
  const author = { id: hex(32), public_key: 'K' }
  const events = [1, 2, 3].map((seq) => event(author, { seq }))
  const { shared, events: shown } = brief({ events, has_more: false }, declared('events.list'))
  expect(JSON.stringify([shared, shown])).not.toContain('"seq"')
  expect(brief({ event: events[0] }, declared('event.get'))).toMatchObject({ event: { seq: 1 } })
})

test('two identities with the same id prefix have different short names', () => {
  const ids = [`${'a'.repeat(10)}${'1'.repeat(54)}`, `${'a'.repeat(10)}${'2'.repeat(54)}`]
  const events = [...ids, ...ids].map((id) => event({ id, public_key: 'K' }))
  const { people } = brief({ events, has_more: false }, declared('events.list'))
  expect(people).toEqual({ [`${'a'.repeat(8)}…`]: ids[0], [`${'a'.repeat(9)}…`]: ids[1] })
})

test('the answer of a third-party tool is not rewritten: its signatures are its own', () => {
  const output = { signature: 'theirs', receipt: { checkpoint: 'x' }, __proto__: null, delegation: { id: 1 } }
  const receipt = { event_id: 'e', command_sha256: 'h', checkpoint: 'long', tree_size: 9, accepted_at: 1 }
  expect(brief({ tool: 't', output, receipt }, declared('tools.call'))).toEqual({
    tool: 't',
    output,
    receipt: { event_id: 'e', accepted_at: 1 },
  })
})

test('no answer has a member with the name of those added beside a list or a text', () => {
  for (const { name, result } of operations) {
    const names = Object.keys((result as { properties: object }).properties)
    expect([name, names.filter((each) => ['shared', 'people', 'hint'].includes(each))]).toEqual([name, []])
  }
})

test('by declaration every paged tool has one list, proof is accepted where one exists, and a long text is read or replaced', () => {
  for (const operation of operations.filter(({ scope }) => scope !== undefined)) {
    const extras = extrasOf(operation)
    if (operation.optional.includes('limit')) expect([operation.name, listOf(operation)]).not.toContain(undefined)
    expect([operation.name, extras.includes('proof')]).toEqual([
      operation.name,
      JSON.stringify(operation.result).includes('"signature":') ||
        JSON.stringify(operation.result).includes('"signed_payload":') ||
        JSON.stringify(operation.result).includes('"command_sha256":'),
    ])
  }
  const taking = (extra: 'text_offset' | 'replaces_sha256') =>
    operations.filter((each) => extrasOf(each).includes(extra)).map(({ name }) => name)
  expect(taking('text_offset')).toEqual([
    'room.get',
    'event.get',
    'docs.read',
    'receiver.items',
    'tools.call',
    'log.proof',
  ])
  expect(taking('replaces_sha256')).toEqual(['post', 'docs.write', 'work.edit'])
})

/** All parts of the text, as they were given. */
function partsOf(data: Json, tokensMax: number): Json[] {
  const parts: Json[] = []
  for (let offset: number | undefined = 0; offset !== undefined; ) {
    const parted = inParts(data, tokensMax, offset)
    if (!parted.ok) throw new Error(`nothing at ${offset}`)
    expect(tokensAtMost(JSON.stringify(parted.data))).toBeLessThanOrEqual(tokensMax)
    const doc = parted.data.doc as Json
    parts.push(doc)
    offset = doc.text_next_offset as number | undefined
  }
  return parts
}

test('the parts of a text make up the text, each of whole characters, whatever it is made of', () => {
  const piece = fc.oneof(
    fc.constantFrom(
      'word ',
      'line\n',
      '"quoted" ',
      '\\',
      '\u0001',
      'ß',
      '漢字',
      '\u{1f600}',
      '\u{20bb7}',
      ' '.repeat(300),
    ),
    fc.string({ unit: 'binary' }).map((text) => text.toWellFormed()),
  )
  const text = fc.array(piece, { minLength: 500, maxLength: 3_000 }).map((pieces) => pieces.join(''))
  fc.assert(
    fc.property(text, (written) => {
      const sha256 = createHash('sha256').update(written).digest('hex')
      const parts = partsOf({ doc: { id: 'd', text: written, sha256 } }, 1_500)
      expect(parts.map((part) => part.text).join('')).toBe(written)
      for (const [n, part] of parts.entries()) {
        const isLast = n === parts.length - 1
        expect(part).toMatchObject({ text_truncated: true, text_bytes: Buffer.byteLength(written) })
        expect(String(part.text).isWellFormed()).toBe(true)
        // A client that knows the hash has been shown the end.
        expect([part.text_sha256, part.sha256]).toEqual(isLast ? [sha256, sha256] : [undefined, undefined])
      }
    }),
    { numRuns: 30 },
  )
})

test('a part requested from the middle of a character begins with all of it', () => {
  const parted = inParts({ doc: { text: 'é'.repeat(5_000) } }, 1_000, 101)
  expect(parted).toMatchObject({ ok: true, data: { doc: { text_offset: 100 } } })
  expect(inParts({ doc: { text: 'é'.repeat(5_000) } }, 1_000, 10_000)).toEqual({ ok: false, bytes: 10_000 })
})

test('a part ends after a line if one ends near its end', () => {
  const { data } = inParts({ doc: { text: 'one line of many\n'.repeat(2_000) } }, 1_000) as { data: Json }
  expect((data.doc as Json).text).toMatch(/^(one line of many\n)+$/)
})

test('two long texts share the room; a value that is no text is shown as its JSON', () => {
  const long = 'so it goes on '.repeat(4_000)
  const { data } = inParts({ doc: { text: long, signed_payload: `{"text":${JSON.stringify(long)}}` } }, 5_000) as {
    data: Json
  }
  const doc = data.doc as Json
  expect([doc.text_truncated, doc.signed_payload_truncated]).toEqual([true, true])
  const output = Array.from({ length: 4_000 }, (_, n) => ({ n, of: 'many' }))
  let read = ''
  for (let offset: number | undefined = 0; offset !== undefined; ) {
    const parted = inParts({ status: 200, output }, 5_000, offset) as { data: Json }
    expect(parted.data).toMatchObject({ output_is_json_text: true })
    read += parted.data.output
    offset = parted.data.output_next_offset as number | undefined
  }
  expect(JSON.parse(read)).toEqual(output)
})

test('the text of a result equals its structured content, for an answer as for a refusal', () => {
  const outcomes = [
    { ok: true, data: { events: [{ text: 'x' }], has_more: false } },
    { ok: false, error: { code: 'rate_limited', message: 'wait 3 s', retry_after: 3 } },
  ]
  for (const outcome of outcomes) {
    const { content, structuredContent } = toolResult(outcome)
    expect(content.map(({ text }) => JSON.parse(text))).toEqual([structuredContent])
  }
})
