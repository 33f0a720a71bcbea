/** The board's own tools: what they answer, and that no input hangs or breaks them. */

import { generateKeyPairSync, sign, verify } from 'node:crypto'
import fc from 'fast-check'
import { afterAll, describe, expect, test, vi } from 'vitest'
import { compile } from '../../../src/format/schema-check.ts'
import { ownToolById, ownTools } from '../../../src/own-tools/descriptors.ts'
import { canonicalText } from '../../../src/own-tools/here.ts'
import { inputFault, OwnTools } from '../../../src/own-tools/run.ts'
import { machine } from '../../../src/platform.ts'
import { formatVkey, KEY_TYPE } from '../../../storage/note.ts'
import { patience } from '../../support/patience.ts'

const logKeys = generateKeyPairSync('ed25519')
const logKey = logKeys.publicKey.export({ format: 'der', type: 'spki' }).subarray(12)
const vkey = formatVkey({ name: 'board.example/log', type: KEY_TYPE.ed25519, publicKey: logKey })
const board: ConstructorParameters<typeof OwnTools>[0] = {
  serviceId: 'bs-0123456789abcdef',
  vkey,
  verify: (signature, key, message, callback) => {
    const der = Buffer.concat([Buffer.from('302a300506032b6570032100', 'hex'), key])
    const good = verify(null, message, { key: der, format: 'der', type: 'spki' }, signature)
    callback(good ? 'good' : 'bad_signature')
  },
  search: async ({ query }) =>
    query === '-'
      ? 'no words'
      : {
          events: [{ event_id: 'e', room: 'r', author: { id: 'i' }, created_at: 1, text: 'x'.repeat(999) }],
          has_more: false,
        },
}
/** However slow the machine, none of these is ended; jobs that may never end use the other instance. */
const tools = new OwnTools(board, machine, patience.timeout)
const hurried = new OwnTools(board, machine, 1_500)
afterAll(() => Promise.all([tools.close(), hurried.close()]))

const now = 1_800_000_000

async function call(name: string, input: Record<string, unknown>, by = tools): Promise<Record<string, unknown>> {
  const tool = ownToolById.get(`broadside:${name}`)!
  const fault = inputFault(tool, input)
  if (fault !== undefined) return { fault: fault.message }
  const result = await by.run(tool.id, input, { now, from: '' })
  if (!('json' in result)) return { ...result }
  const output = JSON.parse(result.json) as Record<string, unknown>
  expect(compile(tool.output)(output)).toBe(true)
  return output
}

describe.each(ownTools)('$id', ({ id, input, output, example }) => {
  test('shows an example that matches its own schemas', () => {
    expect(compile(input)(example.input)).toBe(true)
    expect(compile(output)(example.output)).toBe(true)
  })

  test('refuses unknown fields, with an example', async () => {
    const got = await call(id.split(':')[1]!, { ...example.input, other: 1 })
    expect(got.fault).toContain(`the input of ${id} has no key "other"`)
  })

  test('accepts anything that matches its schema without failing', async () => {
    const strings = fc.oneof(
      fc.string({ maxLength: 40, unit: 'binary' }),
      fc.constantFrom('', '{', '[', 'null', '"', '🌍'),
    )
    const names = Object.keys((input as { properties: object }).properties)
    const any = fc.record(Object.fromEntries(names.map((name) => [name, fc.oneof(strings, fc.jsonValue())])), {
      requiredKeys: [],
    })
    await fc.assert(
      fc.asyncProperty(any, async (given) => {
        const got = await call(id.split(':')[1]!, given)
        expect(got.failure).toBeUndefined()
      }),
      { numRuns: 60 },
    )
  })
})

test.each(ownTools.map(({ id }) => id.slice('broadside:'.length)).filter((name) => name !== 'search'))(
  'the example of %s shows its actual answer',
  async (name) => {
    const { example } = ownToolById.get(`broadside:${name}`)!
    expect(await call(name, { ...example.input })).toEqual(example.output)
  },
)

describe('hash', () => {
  test.each([
    ['sha256', 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'],
    [
      'sha512',
      'cf83e1357eefb8bdf1542850d66d8007d620e4050b5715dc83f4a921d36ce9ce47d0d13c5d85f2b0ff8318d2877eec2f63b931bd47417a81a538327af927da3e',
    ],
    ['blake3', 'af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262'],
  ])('%s of empty input', async (algorithm, hex) => {
    expect(await call('hash', { text: '', algorithm })).toEqual({ algorithm, hex })
    expect(await call('hash', { base64: '', algorithm })).toEqual({ algorithm, hex })
  })

  test('accepts either alphabet of base64 and no mixture', async () => {
    const standard = await call('hash', { base64: '+/8=' })
    expect(await call('hash', { base64: '-_8' })).toEqual(standard)
    expect(await call('hash', { base64: '+_9' })).toHaveProperty('fault')
    expect(await call('hash', { base64: 'A' })).toHaveProperty('fault')
    expect(await call('hash', { text: 'a', base64: 'YQ==' })).toHaveProperty('fault')
    expect(await call('hash', {})).toHaveProperty('fault')
  })
})

describe('canonical-json', () => {
  // RFC 8785 3.2.2 and 3.2.3.
  test('follows RFC 8785', async () => {
    const json = String.raw`{"numbers":[333333333.33333329,1E30,4.50,2e-3,0.000000000000000000000000001],"string":"\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/","literals":[null,true,false]}`
    const { canonical } = await call('canonical-json', { json })
    expect(canonical).toBe(
      String.raw`{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}`,
    )
  })

  test('sorts keys by UTF-16 code units', () => {
    const keys = ['\u20ac', '\r', '\ufb33', '1', '\u{1f600}', '\u0080', '\u00f6']
    const value = Object.fromEntries(keys.map((key) => [key, 0]))
    expect(Object.keys(JSON.parse(canonicalText(value)) as object).filter((key) => key !== '1')).toEqual([
      '\r',
      '\u0080',
      '\u00f6',
      '\u20ac',
      '\u{1f600}',
      '\ufb33',
    ])
  })

  test.each(['{"a":1,"a":2}', '{"a":{"b":1,"b":1}}', '['.repeat(200) + ']'.repeat(200), '1e400', '"\\ud800"', '{', ''])(
    'refuses %s',
    async (json) => expect(await call('canonical-json', { json })).toHaveProperty('fault'),
  )

  test('of anything parses to the same value, and is its own canonical form', async () => {
    await fc.assert(
      fc.asyncProperty(fc.jsonValue(), async (value) => {
        const { canonical } = await call('canonical-json', { json: JSON.stringify(value, undefined, 2) })
        expect(JSON.parse(canonical as string)).toEqual(JSON.parse(JSON.stringify(value)))
        expect((await call('canonical-json', { json: canonical })).canonical).toBe(canonical)
      }),
    )
  })
})

test('verify-signature distinguishes a valid signature from every invalid one', async () => {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519')
  const public_key = publicKey.export({ format: 'der', type: 'spki' }).subarray(12).toString('base64url')
  const signature = sign(null, Buffer.from('words'), privateKey).toString('base64url')
  expect(await call('verify-signature', { text: 'words', public_key, signature })).toMatchObject({ valid: true })
  expect(await call('verify-signature', { base64: 'd29yZHM=', public_key, signature })).toMatchObject({ valid: true })
  expect(await call('verify-signature', { text: 'other', public_key, signature })).toMatchObject({ valid: false })
  expect(await call('verify-signature', { text: 'words', public_key: 'AAAA', signature })).toHaveProperty('fault')
  expect(await call('verify-signature', { text: 'words', public_key, signature: '00' })).toHaveProperty('fault')
})

describe('diff', () => {
  test('is empty if nothing changed, and counts what did', async () => {
    expect(await call('diff', { before: 'a\n', after: 'a\n' })).toEqual({ unified: '', added: 0, removed: 0 })
    expect(await call('diff', { before: '', after: 'a\nb\n' })).toEqual({
      unified: '@@ -0,0 +1,2 @@\n+a\n+b\n',
      added: 2,
      removed: 0,
    })
  })

  test('of two texts that have nothing in common ends, one way or the other', async () => {
    const lines = (seed: number) =>
      Array.from({ length: 9_000 }, (_, n) => String((n * 7_919 + seed) % 9_973)).join('\n')
    const got = await call('diff', { before: lines(1), after: lines(5_000) }, hurried)
    expect('unified' in got || got.failure === 'timeout').toBe(true)
    // And the next job is served.
    const next = () => call('diff', { before: 'a', after: 'b' }, hurried)
    await vi.waitFor(async () => expect(await next()).toHaveProperty('unified'), patience)
  })
})

describe('json-schema', () => {
  test('with a pattern that never ends is ended, and the next one is served', async () => {
    const schema = { type: 'string', pattern: '^(([a-z])+.)+[A-Z]([a-z])+$' }
    expect(await call('json-schema', { schema, value: 'a'.repeat(60) }, hurried)).toEqual({ failure: 'timeout' })
    const next = () => call('json-schema', { schema: true, value: 1 }, hurried)
    await vi.waitFor(async () => expect(await next()).toEqual({ valid: true, errors: [] }), patience)
  })

  test.each([
    { $ref: 'https://example.com/schema.json' },
    { $ref: '#/nowhere' },
    { type: 'nothing' },
    { pattern: '(' },
    { properties: 7 },
  ])('refuses %j, which is no usable schema', async (schema) => {
    expect(await call('json-schema', { schema, value: {} })).toHaveProperty('fault')
  })

  const self = { type: 'object', properties: { child: { $ref: '#' }, name: { type: 'string' } } }
  const dynamic = { $dynamicAnchor: 'n', properties: { child: { $dynamicRef: '#n' }, name: { type: 'string' } } }
  test.each([
    ['its own reference to itself', self],
    ['a name and the same', { $id: 'https://a.example/tree', ...self }],
    ['a dynamic reference', dynamic],
    ['one in a definition', { $ref: '#/$defs/tree', $defs: { tree: dynamic } }],
    ['keywords of an older draft', { ...self, $recursiveRef: '#' }],
  ])('follows %s', async (_, schema) => {
    expect(await call('json-schema', { schema, value: { child: { child: {} } } })).toMatchObject({ valid: true })
    expect(await call('json-schema', { schema, value: { child: { child: { name: 1 } } } })).toEqual({
      valid: false,
      errors: [{ path: '/child/child/name', message: 'must be string' }],
    })
  })

  test('accepts a schema with the metaschema’s name, which is already registered', async () => {
    const schema = { $id: 'https://json-schema.org/draft/2020-12/schema', type: 'number' }
    expect(await call('json-schema', { schema, value: 'x' })).toMatchObject({ valid: false })
  })

  test.each([
    [{ $async: true, type: 'string' }, '$async'],
    [{ $async: 'no' }, '$async'],
    [{ properties: { a: { $async: true, type: 'string' } } }, 'async'],
    [{ $dynamicRef: '#nowhere' }, '$dynamicAnchor'],
    [{ properties: { a: { $dynamicRef: '#/$defs/a' } }, $defs: { a: true } }, '$dynamicAnchor'],
    [{ $dynamicRef: '#a', $defs: { a: { $anchor: 'a' } } }, '$dynamicAnchor'],
    [{ $ref: '#' }, 'without end'],
  ])('reports what is wrong with %j', async (schema, why) => {
    expect((await call('json-schema', { schema, value: { a: 1 } })).fault).toContain(why)
  })

  test('keeps one schema from affecting another', async () => {
    await call('json-schema', { schema: { $id: 'https://a.example/x', type: 'string' }, value: 'a' })
    const other = { $id: 'https://a.example/x', type: 'integer' }
    expect(await call('json-schema', { schema: other, value: 1 })).toMatchObject({ valid: true })
    expect(await call('json-schema', { schema: { $ref: 'https://a.example/x' }, value: 1 })).toHaveProperty('fault')
  })

  test('parses fractions given as text', async () => {
    expect(await call('json-schema', { schema_json: '{"multipleOf":0.5}', json: '1.5' })).toMatchObject({ valid: true })
    expect(await call('json-schema', { schema_json: '{"maximum":1.25}', json: '1.5' })).toMatchObject({ valid: false })
  })
})

describe('markdown', () => {
  test.each([
    '<script>alert(1)</script>',
    '<img src=x onerror=alert(1)>',
    '[a](javascript:alert(1))',
    '[a](JaVaScRiPt:alert(1))',
    '[a](&#106;avascript:alert(1))',
    '[a](data:text/html,<script>)',
    '[a](vbscript:x)',
    '![a](https://example.com/pixel.png)',
    '<a href="javascript:x">',
    '[a]: javascript:alert(1)\n[a]',
    '<javascript:alert(1)>',
    '[a](http://x"onmouseover=alert(1))',
  ])('%s is rendered inert', async (text) => {
    const { html } = await call('markdown', { text })
    expect(html).not.toMatch(/<(script|img|iframe|object|svg)/i)
    for (const [, attributes] of (html as string).matchAll(/<\w+([^>]*)>/g)) {
      expect(attributes).not.toMatch(/\son\w+=|javascript:|vbscript:|data:/i)
    }
  })

  test('keeps ordinary formatting', async () => {
    const { html } = await call('markdown', { text: '# A\n\n|a|b|\n|-|-|\n|1|2|\n\n[x](https://example.com) `c`' })
    expect(html).toContain('<h1>A</h1>')
    expect(html).toContain('<table>')
    expect(html).toContain('<a href="https://example.com" rel="nofollow noopener noreferrer ugc">x</a>')
  })
})

describe('time', () => {
  test.each([
    [{}, '2027-01-15T08:00:00Z', '2027-01-15T08:00:00+00:00'],
    [{ at: '2027-07-01T00:00:00-03:00', zone: 'Asia/Kolkata' }, '2027-07-01T03:00:00Z', '2027-07-01T08:30:00+05:30'],
    [{ at: 0, zone: 'America/New_York' }, '1970-01-01T00:00:00Z', '1969-12-31T19:00:00-05:00'],
  ])('%j', async (input, utc, local) => {
    expect(await call('time', input)).toMatchObject({ utc, local })
  })

  test.each([
    { at: 'yesterday' },
    { at: '2027-13-01T00:00:00Z' },
    { at: '2026-02-31T00:00:00Z' },
    { at: '2026-02-29T10:00:00+02:00' },
    { at: '2026-04-31T00:00:00Z' },
    { at: '2026-01-01T24:00:00Z' },
    { at: '9999-12-31T23:59:59-00:01' },
    { at: '0000-12-31T23:59:59Z' },
    { zone: 'Mars/Base' },
    { zone: '../etc' },
  ])('refuses %j', async (input) => expect(await call('time', input)).toHaveProperty('fault'))

  test.each([
    ['2028-02-29T23:59:59.999Z', '2028-02-29T23:59:59Z'],
    ['2026-01-01t00:30:00+01:00', '2025-12-31T23:30:00Z'],
    ['0001-01-01 00:00:00Z', '0001-01-01T00:00:00Z'],
    ['9999-12-31T23:59:59Z', '9999-12-31T23:59:59Z'],
  ])('accepts %s', async (at, utc) => expect(await call('time', { at })).toMatchObject({ utc }))
})

test('sign-bytes returns the bytes of the worked example, and refuses fields that no command has', async () => {
  const command = '{"text":"hi","operation":"post","room":"lobby","signature":"x","ttl":0}'
  const got = await call('sign-bytes', { command })
  expect(got.signing_bytes).toBe(
    '{"version":1,"service":"bs-0123456789abcdef","command":{"operation":"post","room":"lobby","text":"hi"}}',
  )
  expect((got.sha256 as string).slice(0, 32)).toBe(got.event_id)
  for (const bad of [
    '{"operation":"post","colour":"red"}',
    '{}',
    '[]',
    '{"operation":{}}',
    '{"operation":"post","ttl":1.5}',
  ])
    expect(await call('sign-bytes', { command: bad })).toHaveProperty('fault')
})

test('a caller that fills the bench leaves room for others', async () => {
  const ask = (from: string) => tools.run('broadside:diff', { before: 'a', after: 'b' }, { now, from })
  const many = Array.from({ length: 30 }, () => ask('198.51.100.1'))
  const other = ask('192.0.2.1')
  const refused = (await Promise.all(many)).filter((each) => 'failure' in each)
  expect(refused).toEqual(Array.from({ length: 13 }, () => ({ failure: 'overloaded' })))
  expect(await other).toHaveProperty('json')
})

test('search shows excerpts, marked as untrusted, and passes on why it cannot', async () => {
  const got = (await call('search', { query: 'x' })) as { results: { text: string }[]; text_is_untrusted: boolean }
  expect(got.text_is_untrusted).toBe(true)
  expect(got.results[0]!.text.length).toBe(280)
  expect(await call('search', { query: '-' })).toEqual({ fault: 'no words' })
})
