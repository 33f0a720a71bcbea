/** A refused command is answered with what would be right, in words that its sender can act on. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type Command, fields } from '../../../actors/kernel/fields.ts'
import { operationByName, operations } from '../../../actors/operations.ts'
import { checkOperation, checkShape } from '../../../src/command/check.ts'
import { ruleOf, type Shape } from '../../../src/format/data-fault.ts'
import { nearest } from '../../../src/format/nearest.ts'
import { ownTools } from '../../../src/own-tools/descriptors.ts'

function told(command: unknown): string {
  const shaped = checkShape(command)
  const checked = shaped.ok ? checkOperation(shaped.value) : shaped
  return checked.ok ? 'taken' : `${checked.refusal.code} ${checked.refusal.field ?? '-'}: ${checked.refusal.message}`
}

const post = (fields: object) => ({ operation: 'post', text: 'x', ...fields })
const id = '0'.repeat(32)

describe('the answer to each mistake', () => {
  test.each([
    [[], 'invalid_json -: a command must be one JSON object, but the body is an array'],
    [null, 'invalid_json -: a command must be one JSON object, but the body is null'],
    [{}, 'missing_field operation: operation is required: name one of the operations at /capabilities'],
    [
      { operation: 'room.list' },
      'unknown_operation operation: there is no operation "room.list"; did you mean rooms.list? /capabilities lists all',
    ],
    [
      { operation: 'delete-all\u001b[2J' },
      'unknown_operation operation: there is no operation "delete-all?[2J"; /capabilities lists all',
    ],
    [
      { operation: 'pots', text: 'x' },
      'unknown_operation operation: there is no operation "pots"; did you mean post? /capabilities lists all',
    ],
    [post({ txet: 'x' }), 'unknown_field txet: a command has no field "txet"; did you mean text?'],
    [post({ replyTo: id }), 'unknown_field replyTo: a command has no field "replyTo"; did you mean reply_to?'],
    [
      { version: 1, service: 'x', command: {} },
      'unknown_field version: a command has no field "version": send the command itself, with its signature, not the bytes that were signed',
    ],
    [
      { operation: 'rooms.list', room: 'lobby' },
      'unknown_field room: rooms.list does not take the field room; its own fields are: query, cursor, limit, data',
    ],
    [
      { operation: 'vote', event_id: id, data: '{"vlaue":1}' },
      'invalid_field data.vlaue: data of vote has no key "vlaue"; did you mean "value"?',
    ],
    [
      { operation: 'work.list', kind: 'oepn' },
      'invalid_field kind: kind must be open, claimed, submitted, revision, rejected, disputed, accepted, refunded, split, cancelled, expired or recovery_required; did you mean "open"?',
    ],
    [
      { operation: 'inbox.get', kind: 'replys' },
      'invalid_field kind: kind must be reply, mention, addressed or request; did you mean "reply"?',
    ],
    [
      post({ data: '{"schema":1,"format":"markdwon"}' }),
      'invalid_field data.format: "format" in data of post must be one of "text", "markdown"; did you mean "markdown"?',
    ],
    [
      { operation: 'docs.write', target: id, text: 'x', data: '{"schema":1}' },
      'invalid_field data.base_version: data of docs.write needs the key "base_version": an integer from 1 to 1000',
    ],
    [
      { operation: 'docs.write', target: id, text: 'x', data: '{"schema":1,"base_version":"1"}' },
      'invalid_field data.base_version: "base_version" in data of docs.write must be an integer from 1 to 1000; a string was sent',
    ],
    [
      { operation: 'webhook.create', data: '{"schema":1,"url":"https://a.example/","kinds":[]}' },
      expect.stringMatching(
        /^invalid_field data\.kinds: "kinds" in data of webhook\.create must be a list of 1 to 9 items, each one of /,
      ),
    ],
    [
      { operation: 'updates.get', data: '{"schema":1,"kinds":["mention","repyl"]}' },
      expect.stringMatching(
        /^invalid_field data\.kinds: "kinds\[1\]" in data of updates\.get must be one of "event\.posted", .*; did you mean "reply"\?$/,
      ),
    ],
    [
      { operation: 'docs.write', target: id, text: 'x', base_version: 1 },
      'unknown_field base_version: docs.write takes "base_version" inside data, which is a string of JSON: {"schema":1,"base_version":1}',
    ],
    [
      { operation: 'vote', event_id: id, value: 1 },
      'unknown_field value: vote takes "value" inside data, which is a string of JSON: {"value":1}',
    ],
    [
      post({ format: 'markdown' }),
      'unknown_field format: post takes "format" inside data, which is a string of JSON: {"schema":1,"format":"markdown"}',
    ],
    [
      { url: 'https://a.example', operation: 'webhook.create' },
      'unknown_field url: webhook.create takes "url" inside data, which is a string of JSON: {"schema":1,"url":"https://a.example"}',
    ],
    [
      { operation: 'work.create', amount: 1, text: 'x', title: '\u001b[2J' },
      expect.stringMatching(
        /^unknown_field title: work\.create takes "title" inside data, which is a string of JSON: \{/,
      ),
    ],
    [
      { operation: 'work.create', amount: 1, text: 'x', titel: 'x' },
      'unknown_field titel: a command has no field "titel"; did you mean "title" inside data?',
    ],
    [
      { operation: 'updates.get', kind: 'reply', kinds: ['reply'] },
      expect.stringMatching(
        /^unknown_field kinds: updates\.get takes "kinds" inside data, which is a string of JSON: \{/,
      ),
    ],
    [
      { operation: 'rooms.list', color: 'red' },
      'unknown_field color: a command has no field "color"; the fields of rooms.list are: query, cursor, limit, data; those of every command: operation, public_key, signature, timestamp, nonce, request_id, proof',
    ],
    [
      { operation: 'no.such', color: 'red' },
      'unknown_field color: a command has no field "color"; the fields are: operation, room, page, text, kind, reply_to, to, request_id, public_key, timestamp, nonce, handle, visibility, members, target, amount, ttl, event_id, cursor, limit, query, before, reason, data, filename, media_type, attachments, signature, proof',
    ],
    [
      { operation: 'log.checkpoint', limit: 1 },
      'unknown_field limit: log.checkpoint does not take the field limit; its own fields are: none',
    ],
    [
      { operation: 'post' },
      'missing_field text: post needs text, the text of the post: 1 to 32768 bytes of UTF-8 without NUL, and not only whitespace',
    ],
    [
      { operation: 'log.consistency' },
      'missing_field data: log.consistency needs data, parameters of an operation that have no field of their own: a string that holds JSON text, at most 65536 bytes; it needs schema, from, to, such as {"schema":1,"from":1,"to":1}',
    ],
    [
      { operation: 'room.policy.set', room: 'den', data: JSON.stringify({ rules: 'a'.repeat(2049) }) },
      'too_large data.rules: "rules" has 2049 bytes, 2048 are allowed',
    ],
    [
      { operation: 'room.policy.set', room: 'den', data: JSON.stringify({ rules: 'ä'.repeat(1025) }) },
      'too_large data.rules: "rules" has 2050 bytes, 2048 are allowed',
    ],
    [
      { operation: 'identity.profile.set', data: JSON.stringify({ schema: 1, description: 'a'.repeat(2049) }) },
      'too_large data.description: "description" has 2049 bytes, 2048 are allowed',
    ],
    [
      post({ text: 5 }),
      'invalid_field text: text must be 1 to 32768 bytes of UTF-8 without NUL, and not only whitespace; a number was sent',
    ],
    [
      post({ to: null }),
      'invalid_field to: to must be an identity id of 64 lowercase hex characters, or a handle such as @ada; null was sent',
    ],
    [
      post({ data: { schema: 1 } }),
      'invalid_field data: data must be a string that holds JSON text, at most 65536 bytes; an object was sent',
    ],
    [
      post({ attachments: id }),
      'invalid_field attachments: attachments must be an array of at most 8 blob ids of 32 lowercase hex characters; a string was sent',
    ],
    [
      post({ attachments: [id, null] }),
      'invalid_field attachments: attachments must be an array of at most 8 blob ids of 32 lowercase hex characters; item 1 is null',
    ],
    [
      post({ attachments: [id, 'x'] }),
      'invalid_field attachments: attachments must be an array of at most 8 blob ids of 32 lowercase hex characters; attachments[1] is not one',
    ],
    [
      { operation: 'vote', event_id: id, data: '1' },
      'invalid_field data: data of vote must contain a JSON object such as {"value":1}; a number was sent',
    ],
    [
      { operation: 'room.invite.accept', data: '{"schema":1,"code":"xyz"}' },
      'invalid_field data.code: "code" in data of room.invite.accept must be the code of an invite: ROOM, a dot, and 43 characters',
    ],
    [
      { operation: 'identity.profile.set', data: '{"schema":1,"links":["https://a.example","ftp://x"]}' },
      'invalid_field data.links: "links[1]" in data of identity.profile.set must be an http(s) address in ASCII',
    ],
    [post({ text: 'ä'.repeat(16_385) }), 'too_large text: text has 32770 bytes, 32768 are allowed'],
    [post({ text: 'a\0b' }), 'invalid_field text: text must not contain a NUL character'],
    [post({ data: 'hello' }), 'invalid_field data: data must contain JSON text: a value should be here at byte 0'],
    [
      post({ data: '[1]' }),
      'invalid_field data: data of post must contain a JSON object such as {"schema":1}; an array was sent',
    ],
    [post({ data: '{}' }), 'invalid_field data.schema: data of post needs the key "schema": 1'],
    [
      post({ data: '{"schema":"1"}' }),
      'invalid_field data.schema: "schema" in data of post must be 1; a string was sent',
    ],
    [
      post({ data: '{"schema":1,"title":"x"}' }),
      'invalid_field data.title: data of post has no key "title": its keys are schema, format, supersedes, source',
    ],
    [
      post({ data: '{"schema":1,"format":"html"}' }),
      'invalid_field data.format: "format" in data of post must be one of "text", "markdown"',
    ],
    [
      { operation: 'log.proof', event_id: id, data: '{"schema":1,"tree_size":0}' },
      'invalid_field data.tree_size: "tree_size" in data of log.proof must be an integer of at least 1',
    ],
    [
      { operation: 'identity.get', target: '@@ada' },
      'invalid_field target: target must be an identity id (64 hex), a handle such as @ada, or a public key (43 characters)',
    ],
  ])('%j', (command, message) => {
    expect(told(command)).toEqual(message)
  })
})

const shapesOf = (shape: Shape): Shape[] => [
  shape,
  ...[...Object.values(shape.properties ?? {}), ...(shape.anyOf ?? [])].flatMap(shapesOf),
  ...(shape.items === undefined ? [] : shapesOf(shape.items)),
]

test('no rule shown to people is a regular expression, and no choice is shown as a pattern', () => {
  const expression = /\^|\\[suxwdpb]|\[[\w-]+\]|\{\d+(,\d*)?\}|\(\?|\)\$/
  const said = operations.flatMap(({ name, required, optional, narrowed, data }) => [
    ...[...required, ...optional].map((field) => [name, field, (narrowed?.[field] ?? fields[field]).rule]),
    ...(data === undefined ? [] : shapesOf(data)).map((shape) => [name, 'data', ruleOf(shape)]),
  ])
  const inTools = ownTools.flatMap(({ id, input }) => shapesOf(input).map((shape) => [id, 'input', ruleOf(shape)]))
  expect([...said, ...inTools].filter(([, , rule]) => expression.test(rule!))).toEqual([])
  // Words with only bars between them.
  const choices = operations.flatMap(({ narrowed, data }) =>
    [
      ...Object.values(narrowed ?? {}).map(({ schema }) => schema as Shape),
      ...(data === undefined ? [] : shapesOf(data)),
    ]
      .map(({ pattern = '' }) => pattern)
      .filter((pattern) => /^\^\([a-z_|]+\)\$$/.test(pattern)),
  )
  expect(choices).toEqual([])
})

const blanks = [
  ' ',
  '\n\t',
  '\u00a0',
  '\u2003\u3000',
  '\u200b',
  '\ufeff',
  '\u00ad',
  '\u2060\u200d',
  '\u3164',
  '\u2800',
  '\u{e0020}',
  '\ufe0f',
]

test('a text that shows nothing is refused wherever people read it, and one that shows something is accepted', () => {
  const title = '{"schema":1,"title":"A"}'
  const texts: [{ readonly operation: string; readonly [field: string]: unknown }, string][] = [
    [{ operation: 'post' }, 'text'],
    [{ operation: 'conversation.open', members: ['0'.repeat(64)] }, 'text'],
    [{ operation: 'room.create', room: 'den' }, 'text'],
    [{ operation: 'docs.create', data: title }, 'text'],
    [{ operation: 'docs.write', target: id, data: '{"schema":1,"base_version":1}' }, 'text'],
    [{ operation: 'work.create', amount: 1, data: title }, 'text'],
    [{ operation: 'work.edit', event_id: id }, 'text'],
    [{ operation: 'tools.review', target: 's_0123456789abcdef', kind: 'works' }, 'text'],
    [{ operation: 'room.hide', event_id: id }, 'reason'],
    [{ operation: 'work.revise', event_id: id }, 'reason'],
  ]
  const taking = operations.filter(({ required, optional }) => [...required, ...optional].includes('text'))
  expect(taking.map(({ name }) => name).sort()).toEqual(
    texts.flatMap(([{ operation }, field]) => (field === 'text' ? [operation] : [])).sort(),
  )
  const words = 'must contain a visible character: it contains only white space or invisible characters'
  for (const [command, field] of texts) {
    for (const blank of blanks)
      expect([blank, told({ ...command, [field]: blank })]).toEqual([
        blank,
        `invalid_field ${field}: ${field} ${words}`,
      ])
    for (const seen of ['.', ' a ', '\u0001', '\u0301', '👩‍🚀', 'ا\u200f'])
      expect([seen, told({ ...command, [field]: seen })]).toEqual([seen, 'taken'])
  }
  // Twenty invisible characters are no reason either.
  const reject = { operation: 'work.reject', event_id: id, reason: '\u200b'.repeat(20) }
  expect(told(reject)).toBe(`invalid_field reason: reason ${words}`)
})

const nul = String.raw`\u0000`

test.each([
  ['identity.profile.set', {}, `{"schema":1,"description":"a${nul}b"}`],
  ['identity.profile.set', {}, `{"schema":1,"capabilities":["a","b${nul}"]}`],
  ['room.policy.set', { room: 'lobby' }, `{"rules":"${nul}"}`],
  ['docs.create', { text: 'x' }, `{"schema":1,"title":"a${nul}b"}`],
])('%s accepts no NUL inside a string of data', (operation, fields, data) => {
  const asked = { operation, ...fields, data }
  expect(told(asked)).toMatch(
    /^invalid_field data\.(description|capabilities|rules|title): no string in data may contain a NUL character$/,
  )
  // Here it is a backslash and five more characters.
  expect(told({ ...asked, data: data.replace(nul, `\\${nul}`) })).not.toMatch(/NUL/)
})

test.each([
  ['docs.create', { text: 'x' }],
  ['docs.write', { target: id, text: 'x' }],
  ['work.create', { text: 'x', amount: 1 }],
])('the title in %s is one visible line', (operation, fields) => {
  const version = operation === 'docs.write' ? { base_version: 1 } : {}
  const titled = (title: string) =>
    told({ operation, ...fields, data: JSON.stringify({ schema: 1, ...version, title }) })
  for (const title of ['Plan', ' Plan ', 'خطة', '计划', '👩‍🚀', 'a: b — c'])
    expect([title, titled(title)]).toEqual([title, 'taken'])
  for (const title of ['', ' ', '\u3000\u200b', 'a\nb', 'a\u2028b', 'a\u202eb', 'a\u2066b', '\u001b[31m', 'a\u0085'])
    expect([title, titled(title)]).toEqual([
      title,
      expect.stringMatching(/^invalid_field data\.title: "title" in data of /),
    ])
  // Long ones are refused as fast as short ones.
  expect(titled(`${'a '.repeat(30_000)}\n`)).toMatch(/^invalid_field/)
})

test('empty fields count as not given, for every operation', () => {
  expect(told({ ...post({}), room: '', ttl: 0, attachments: [], visibility: '', amount: 0, members: [] })).toBe('taken')
  expect(told({ ...post({}), text: '' })).toMatch(/^missing_field text/)
})

test('whatever is sent, the answer is a command or one sentence without control characters, of bounded length', () => {
  const anything = fc.oneof(
    fc.jsonValue(),
    fc.dictionary(
      fc.oneof(fc.string({ unit: 'binary' }), fc.constantFrom('operation', 'text', 'data')),
      fc.jsonValue(),
    ),
    fc.record({ operation: fc.oneof(fc.constantFrom(...operationByName.keys()), fc.string({ unit: 'binary' })) }),
    fc.record({ operation: fc.constant('post'), text: fc.string(), data: fc.json() }),
  )
  fc.assert(
    fc.property(anything, (value) => {
      // A value that the strict reader accepts has plain integers only.
      const message = told(JSON.parse(JSON.stringify(value)) as Command)
      expect(message).toMatch(/^[\x20-\x7e]{5,600}$/)
    }),
    { numRuns: 500 },
  )
})

test('a suggestion is found despite case, separators and a typo, and no word is made up', () => {
  const names = [...operationByName.keys()]
  for (const name of names) {
    expect(nearest(name.toUpperCase(), names)).toBe(name)
    expect(nearest(name.replaceAll('.', '_'), names)).toBe(name)
  }
  expect(nearest('threads.get', names)).toBe('thread.get')
  expect(nearest('weather.forecast', names)).toBeUndefined()
  expect(nearest('x'.repeat(2_000_000), names)).toBeUndefined()
})
