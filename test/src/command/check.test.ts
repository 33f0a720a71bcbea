/** A refused command is told what would be right, in words that its sender can act on. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type Command, checkOperation, checkShape } from '../../../src/command/check.ts'
import { nearest } from '../../../src/command/nearest.ts'
import { operationByName } from '../../../src/operations/index.ts'

function told(command: unknown): string {
  const shaped = checkShape(command)
  const checked = shaped.ok ? checkOperation(shaped.value) : shaped
  return checked.ok ? 'taken' : `${checked.refusal.code} ${checked.refusal.field ?? '-'}: ${checked.refusal.message}`
}

const post = (fields: object) => ({ operation: 'post', text: 'x', ...fields })
const id = '0'.repeat(32)

describe('what is said of a mistake', () => {
  test.each([
    [[], 'invalid_json -: a command is one JSON object, and the body is an array'],
    [null, 'invalid_json -: a command is one JSON object, and the body is null'],
    [{}, 'missing_field operation: operation is required: name one of the operations at /capabilities'],
    [
      { operation: 'room.list' },
      'unknown_operation operation: there is no operation "room.list"; did you mean rooms.list? /capabilities lists all',
    ],
    [
      { operation: 'delete-all\u001b[2J' },
      'unknown_operation operation: there is no operation "delete-all?[2J"; /capabilities lists all',
    ],
    [post({ replyTo: id }), 'unknown_field replyTo: a command has no field "replyTo"; did you mean reply_to?'],
    [
      { version: 1, service: 'x', command: {} },
      'unknown_field version: a command has no field "version": send the command itself, with its signature, not the bytes that were signed',
    ],
    [
      { operation: 'rooms.list', room: 'lobby' },
      'unknown_field room: rooms.list does not take the field room; its own fields are: query, cursor, limit',
    ],
    [
      { operation: 'log.checkpoint', limit: 1 },
      'unknown_field limit: log.checkpoint does not take the field limit; its own fields are: none',
    ],
    [{ operation: 'post' }, 'missing_field text: post needs text, what is said: 1 to 32768 bytes of UTF-8 without NUL'],
    [
      { operation: 'log.consistency' },
      'missing_field data: log.consistency needs data, what an operation takes beyond the fields: a string that holds JSON text, at most 65536 bytes; it needs schema, from, to, such as {"schema":1,"from":1,"to":1}',
    ],
    [
      { operation: 'room.policy.set', room: 'den', data: JSON.stringify({ rules: 'a'.repeat(2049) }) },
      'too_large data: "rules" has 2049 bytes, 2048 are allowed',
    ],
    [
      { operation: 'room.policy.set', room: 'den', data: JSON.stringify({ rules: 'ä'.repeat(1025) }) },
      'too_large data: "rules" has 2050 bytes, 2048 are allowed',
    ],
    [
      { operation: 'identity.profile.set', data: JSON.stringify({ schema: 1, description: 'a'.repeat(2049) }) },
      'too_large data: "description" has 2049 bytes, 2048 are allowed',
    ],
    [post({ text: 5 }), 'invalid_field text: text must be 1 to 32768 bytes of UTF-8 without NUL; a number was sent'],
    [post({ to: null }), 'invalid_field to: to must be an identity id of 64 lowercase hex characters; null was sent'],
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
      'invalid_field attachments: attachments must be an array of at most 8 blob ids of 32 lowercase hex characters; attachments[1] is none',
    ],
    [
      { operation: 'vote', event_id: id, data: '1' },
      'invalid_field data: data of vote must hold a JSON object such as {"value":1}',
    ],
    [
      { operation: 'room.invite.accept', data: '{"schema":1,"code":"xyz"}' },
      'invalid_field data: "code" in data of room.invite.accept must be a string that fits ^[a-z0-9][a-z0-9_-]{0,63}\\.[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]$ (the code of an invite: ROOM, a dot, and 43 characters)',
    ],
    [
      { operation: 'identity.profile.set', data: '{"schema":1,"links":["https://a.example","ftp://x"]}' },
      'invalid_field data: item 1 of "links" in data of identity.profile.set must be a string that fits ^https?://[!-~]{1,500}$ (an http(s) address in ASCII)',
    ],
    [post({ text: 'ä'.repeat(16_385) }), 'too_large text: text has 32770 bytes, 32768 are allowed'],
    [post({ text: 'a\0b' }), 'invalid_field text: text must not hold a NUL character'],
    [post({ data: 'hello' }), 'invalid_field data: data must hold JSON text: a value should be here at byte 0'],
    [post({ data: '[1]' }), 'invalid_field data: data of post must hold a JSON object such as {"schema":1}'],
    [post({ data: '{}' }), 'invalid_field data: data of post needs the key "schema": 1'],
    [post({ data: '{"schema":"1"}' }), 'invalid_field data: "schema" in data of post must be 1'],
    [
      post({ data: '{"schema":1,"title":"x"}' }),
      'invalid_field data: data of post has no key "title": its keys are schema, format, supersedes',
    ],
    [
      post({ data: '{"schema":1,"format":"html"}' }),
      'invalid_field data: "format" in data of post must be one of "text", "markdown"',
    ],
    [
      { operation: 'log.proof', event_id: id, data: '{"schema":1,"tree_size":0}' },
      'invalid_field data: "tree_size" in data of log.proof must be an integer of at least 1',
    ],
    [
      { operation: 'identity.get', target: '@ada' },
      'invalid_field target: target must be an identity id (64 hex), a handle without @, or a public key (43 characters)',
    ],
  ])('%j', (command, message) => {
    expect(told(command)).toBe(message)
  })
})

const nul = String.raw`\u0000`

test.each([
  ['identity.profile.set', {}, `{"schema":1,"description":"a${nul}b"}`],
  ['identity.profile.set', {}, `{"schema":1,"capabilities":["a","b${nul}"]}`],
  ['room.policy.set', { room: 'lobby' }, `{"rules":"${nul}"}`],
  ['docs.create', { text: 'x' }, `{"schema":1,"title":"a${nul}b"}`],
])('%s takes no NUL inside a string of data', (operation, fields, data) => {
  const asked = { operation, ...fields, data }
  expect(told(asked)).toBe('invalid_field data: no string in data may hold a NUL character')
  // Here it is a backslash and five letters more.
  expect(told({ ...asked, data: data.replace(nul, `\\${nul}`) })).not.toMatch(/NUL/)
})

test.each([
  ['docs.create', { text: 'x' }],
  ['docs.write', { target: id, text: 'x' }],
  ['work.create', { text: 'x', amount: 1 }],
])('the title in %s is one line that is seen', (operation, fields) => {
  const version = operation === 'docs.write' ? { base_version: 1 } : {}
  const titled = (title: string) =>
    told({ operation, ...fields, data: JSON.stringify({ schema: 1, ...version, title }) })
  for (const title of ['Plan', ' Plan ', 'خطة', '计划', '👩‍🚀', 'a: b — c'])
    expect([title, titled(title)]).toEqual([title, 'taken'])
  for (const title of ['', ' ', '\u3000\u200b', 'a\nb', 'a\u2028b', 'a\u202eb', 'a\u2066b', '\u001b[31m', 'a\u0085'])
    expect([title, titled(title)]).toEqual([title, expect.stringMatching(/^invalid_field data: "title" in data of /)])
  // Long ones are refused as fast as short ones.
  expect(titled(`${'a '.repeat(30_000)}\n`)).toMatch(/^invalid_field/)
})

test('fields that are empty count as not given, whatever the operation', () => {
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
      // A value that the strict reader lets through has plain integers only.
      const message = told(JSON.parse(JSON.stringify(value)) as Command)
      expect(message).toMatch(/^[\x20-\x7e]{5,600}$/)
    }),
    { numRuns: 500 },
  )
})

test('the word that is meant is found through case, separators and a slip, and no word is made up', () => {
  const names = [...operationByName.keys()]
  for (const name of names) {
    expect(nearest(name.toUpperCase(), names)).toBe(name)
    expect(nearest(name.replaceAll('.', '_'), names)).toBe(name)
  }
  expect(nearest('threads.get', names)).toBe('thread.get')
  expect(nearest('weather.forecast', names)).toBeUndefined()
  expect(nearest('x'.repeat(2_000_000), names)).toBeUndefined()
})
