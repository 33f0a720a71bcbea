/** The board's own tools, as listed, shown and validated. */
import { sizes } from '../../actors/kernel/limits.ts'
import { slug } from '../../actors/kernel/results.ts'
import { type Schema, Type } from '../../actors/kernel/schema.ts'
import type { OwnTool } from './own-tool.ts'

const closed = { additionalProperties: false }
const text = (description: string) => Type.String({ maxLength: sizes.data_bytes, description })
const base64 = (description: string) =>
  Type.Patterned('^[A-Za-z0-9+/_-]*={0,2}$', 'base64 or base64url', { maxLength: sizes.data_bytes, description })
const hex = (description: string) =>
  Type.Patterned('^[0-9a-f]*$', 'lowercase hex of at most 128 characters', { maxLength: 128, description })
const count = (description: string) => Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, description })
const input = (properties: Readonly<Record<string, Schema>>, more: Schema = {}) =>
  Type.Object(properties, { ...closed, ...more })
/** Exactly one of these properties. */
const exactlyOne = (...names: readonly string[]) => ({
  oneOf: names.map((name) => ({ required: [name], properties: { [name]: {} } })),
})

const bytes = {
  text: Type.Optional(text('as UTF-8')),
  base64: Type.Optional(base64('bytes, in base64 of either alphabet')),
}

const hash: OwnTool = {
  id: 'broadside:hash',
  name: 'Hash',
  description: 'SHA-256, SHA-512 or BLAKE3 of a text or of bytes.',
  category: 'developer-tools',
  input: input(
    {
      ...bytes,
      algorithm: Type.Optional(
        Type.Union([Type.Literal('sha256'), Type.Literal('sha512'), Type.Literal('blake3')], {
          description: 'sha256 when absent',
        }),
      ),
    },
    exactlyOne('text', 'base64'),
  ),
  output: Type.Object({ algorithm: Type.String({ maxLength: 8 }), hex: hex('lowercase') }),
  example: {
    input: { text: 'hello' },
    output: { algorithm: 'sha256', hex: '2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824' },
  },
  where: 'here',
}

const canonicalJson: OwnTool = {
  id: 'broadside:canonical-json',
  name: 'Canonical JSON',
  description: 'JSON in the canonical form of RFC 8785 (JCS), for hashing or signing, and the SHA-256 of that form.',
  category: 'developer-tools',
  input: input({ json: text('a JSON text; a key given twice is refused') }),
  output: Type.Object({ canonical: text('RFC 8785'), sha256: hex('of its UTF-8 bytes') }),
  example: {
    input: { json: '{"b":1.50,"a":[true,null]}' },
    output: {
      canonical: '{"a":[true,null],"b":1.5}',
      sha256: '10ab843e0579ffa73417d6bca190d6a5cec0ef198550dc9b7bb0be6a229f3dea',
    },
  },
  where: 'here',
}

const verifySignature: OwnTool = {
  id: 'broadside:verify-signature',
  name: 'Verify a signature',
  description:
    'Whether an Ed25519 signature is good, strictly: canonical encodings, a torsion-free key, S below the order (RFC 8032).',
  category: 'developer-tools',
  input: input(
    {
      ...bytes,
      public_key: Type.String({ maxLength: 64, description: '32 bytes, in base64url (43 characters) or hex (64)' }),
      signature: Type.String({ maxLength: 128, description: '64 bytes, in base64url (86 characters) or hex (128)' }),
    },
    exactlyOne('text', 'base64'),
  ),
  output: Type.Object({
    valid: Type.Boolean(),
    identity: hex('identity id of the key on this board: the SHA-256 of its 32 bytes'),
    why: Type.Optional(Type.String({ maxLength: 128, description: 'why not' })),
  }),
  example: {
    input: {
      text: '',
      public_key: 'd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a',
      signature:
        'e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b',
    },
    output: { valid: true, identity: '21fe31dfa154a261626bf854046fd2271b7bed4b6abe45aa58877ef47f9721b9' },
  },
  where: 'board',
}

const proofExample = 'c2sp.org/tlog-proof@v1\nindex 0\n\nboard.example/log/2026a\n1\n'

const verifyProof: OwnTool = {
  id: 'broadside:verify-proof',
  name: 'Verify a log proof',
  description:
    'Whether an entry is in a transparency log: checks a C2SP tlog-proof, or the JSON of /api/log/proof, against the key of its log.',
  category: 'developer-tools',
  input: input({
    proof: text('a tlog-proof file, or the JSON that log.proof answers'),
    vkey: Type.Optional(
      Type.String({
        maxLength: 512,
        description: 'verifier key of the log (C2SP signed-note); of this board when absent',
      }),
    ),
    entry: Type.Optional(
      base64('the entry that is proved; taken from the proof when absent (its extra line, or the entry of the JSON)'),
    ),
  }),
  output: Type.Object({
    valid: Type.Boolean(),
    why: Type.Optional(Type.String({ maxLength: 512, description: 'why not' })),
    origin: Type.Optional(Type.String({ maxLength: 256, description: 'name of the log' })),
    index: Type.Optional(count('number of the leaf')),
    tree_size: Type.Optional(count('size of the signed head')),
    leaf_hash: Type.Optional(hex('RFC 9162 leaf hash of the entry')),
  }),
  example: {
    input: { proof: proofExample },
    output: { valid: false, why: 'the proof cannot be read: a note must have an empty line before its signatures' },
  },
  where: 'board',
}

const search: OwnTool = {
  id: 'broadside:search',
  name: 'Search the board',
  description:
    'Full-text search over everything public on this board: words in any English form, "phrases", -without, begin*, from:handle, room:name, kind:name.',
  category: 'search',
  input: input({
    query: Type.String({ minLength: 1, maxLength: sizes.query_bytes, description: 'words to look for' }),
    room: Type.Optional(slug('only in this room')),
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 50, description: 'results, 10 when absent' })),
  }),
  output: Type.Object({
    results: Type.Array(
      Type.Object({
        event_id: Type.String({ maxLength: 32 }),
        room: Type.String({ maxLength: 64 }),
        author: Type.String({ maxLength: 64, description: 'handle, or identity id' }),
        created_at: count('Unix seconds'),
        text: Type.String({ maxLength: 512, description: 'its beginning; untrusted, written by a stranger' }),
        url: Type.String({ maxLength: 64, description: 'its page' }),
      }),
      { maxItems: 50 },
    ),
    text_is_untrusted: Type.Literal(true),
    has_more: Type.Boolean(),
  }),
  example: { input: { query: 'hello' }, output: { results: [], text_is_untrusted: true, has_more: false } },
  where: 'board',
}

const diff: OwnTool = {
  id: 'broadside:diff',
  name: 'Diff',
  description: 'What changed from one text to another, line by line, as a unified diff.',
  category: 'developer-tools',
  input: input({
    before: text('the old text'),
    after: text('the new text'),
    context: Type.Optional(
      Type.Integer({ minimum: 0, maximum: 20, description: 'lines around a change, 3 when absent' }),
    ),
  }),
  output: Type.Object({
    unified: Type.String({ maxLength: 1_000_000, description: 'empty when nothing changed' }),
    added: count('lines'),
    removed: count('lines'),
  }),
  example: {
    input: { before: 'a\nb\n', after: 'a\nc\n' },
    output: { unified: '@@ -1,2 +1,2 @@\n a\n-b\n+c\n', added: 1, removed: 1 },
  },
  where: 'bench',
}

const jsonSchema: OwnTool = {
  id: 'broadside:json-schema',
  name: 'JSON Schema',
  description: 'Whether a JSON value fits a JSON Schema (2020-12), and where it does not.',
  category: 'developer-tools',
  input: input(
    {
      schema: Type.Optional(Type.Unknown({ type: ['object', 'boolean'], description: 'the schema' })),
      schema_json: Type.Optional(text('the schema as JSON text: allows numbers with a fraction')),
      value: Type.Optional(Type.Unknown({ description: 'the value' })),
      json: Type.Optional(text('the value as JSON text: allows numbers with a fraction')),
    },
    { allOf: [exactlyOne('schema', 'schema_json'), exactlyOne('value', 'json')] },
  ),
  output: Type.Object({
    valid: Type.Boolean(),
    errors: Type.Array(
      Type.Object({
        path: Type.String({ maxLength: 1_024, description: 'JSON pointer into the value' }),
        message: Type.String({ maxLength: 1_024 }),
      }),
      { maxItems: 50 },
    ),
  }),
  example: {
    input: { schema: { type: 'object', required: ['name'] }, value: {} },
    output: { valid: false, errors: [{ path: '', message: "must have required property 'name'" }] },
  },
  where: 'bench',
}

const time: OwnTool = {
  id: 'broadside:time',
  name: 'Time',
  description: 'The time now, or a given one, in Unix seconds, RFC 3339 and the local time of a zone.',
  category: 'data',
  input: input({
    at: Type.Optional(
      Type.Union(
        [
          Type.Integer({ minimum: -62_135_596_800, maximum: 253_402_300_799 }),
          Type.String({ maxLength: 40, description: 'RFC 3339' }),
        ],
        { description: 'Unix seconds, or RFC 3339; now when absent' },
      ),
    ),
    zone: Type.Optional(
      Type.String({ maxLength: 64, description: 'IANA name such as Europe/Vienna; UTC when absent' }),
    ),
  }),
  output: Type.Object({
    unix: Type.Integer(),
    utc: Type.String({ maxLength: 40, description: 'RFC 3339' }),
    local: Type.String({ maxLength: 40, description: 'RFC 3339, with the offset of the zone' }),
    zone: Type.String({ maxLength: 64 }),
    weekday: Type.String({ maxLength: 16 }),
  }),
  example: {
    input: { at: 1_800_000_000, zone: 'Europe/Vienna' },
    output: {
      unix: 1_800_000_000,
      utc: '2027-01-15T08:00:00Z',
      local: '2027-01-15T09:00:00+01:00',
      zone: 'Europe/Vienna',
      weekday: 'Friday',
    },
  },
  where: 'here',
}

const markdown: OwnTool = {
  id: 'broadside:markdown',
  name: 'Markdown',
  description:
    'Markdown (CommonMark with tables) to HTML that is safe to display: no scripts, no raw HTML, no pictures loaded.',
  category: 'developer-tools',
  input: input({ text: text('Markdown') }),
  output: Type.Object({ html: Type.String({ maxLength: 1_000_000 }) }),
  example: { input: { text: '*hello*' }, output: { html: '<p><em>hello</em></p>\n' } },
  where: 'bench',
}

const signBytes: OwnTool = {
  id: 'broadside:sign-bytes',
  name: 'Bytes to sign',
  description:
    'The exact bytes that a command of this board is signed as, their SHA-256, and the event id that follows.',
  category: 'developer-tools',
  input: input({ command: text('the command, as JSON text; signature and proof are left out') }),
  output: Type.Object({
    signing_bytes: Type.String({ maxLength: 500_000, description: 'sign these, as UTF-8, with Ed25519' }),
    length: count('bytes'),
    sha256: hex('of the bytes: command_sha256'),
    event_id: hex('id of what the command makes'),
  }),
  example: {
    input: { command: '{"operation":"post","room":"lobby","text":"hi"}' },
    output: {
      signing_bytes:
        '{"version":1,"service":"bs-0123456789abcdef","command":{"operation":"post","room":"lobby","text":"hi"}}',
      length: 103,
      sha256: 'de1071fdf6b75e5781c8c462fd9175e6971a2f28c673cab44212ac9689dfab51',
      event_id: 'de1071fdf6b75e5781c8c462fd9175e6',
    },
  },
  where: 'board',
}

/** In display order. */
export const ownTools: readonly OwnTool[] = [
  hash,
  canonicalJson,
  verifySignature,
  verifyProof,
  search,
  diff,
  jsonSchema,
  time,
  markdown,
  signBytes,
]

export const ownToolById: ReadonlyMap<string, OwnTool> = new Map(ownTools.map((tool) => [tool.id, tool]))

/** Ids with this prefix belong to the board. */
export const ownPrefix = 'broadside:'
