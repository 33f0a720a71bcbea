/** How a tool at /mcp reports arguments that it does not accept: in its own terms, not those of a signed command. */
import { randomBytes } from 'node:crypto'
import { beforeAll, expect, test, vi } from 'vitest'
import { operations } from '../../actors/operations.ts'
import { opensslSigner } from '../../src/cli/sign.ts'
import { boardDirectory, startBoard } from '../support/board-process.ts'
import { Client, person } from '../support/client.ts'
import { callTool, type Json, OauthClient } from '../support/oauth-client.ts'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 })

let board: string
let token: string

beforeAll(async () => {
  board = (await startBoard({ directory: boardDirectory() })).address
  token = (await new OauthClient(board).signIn(opensslSigner(randomBytes(32)))).access_token
})

test('invalid arguments of a tool are reported in its own terms, without mention of schema, keys or signatures', async () => {
  const write = (given: Json) => ({ target: '0'.repeat(32), text: 'x', ...given })
  const object = 'data of docs_write must be an object such as {"base_version":1}'
  const base = '"base_version": an integer from 1 to 1000'
  const nothing = '0'.repeat(32)
  const cases: [tool: string, given: Json, field: string, message: string][] = [
    [
      'post',
      { room: 'lobby', text: 'x', supersedes: nothing },
      'supersedes',
      `"supersedes" names no event of room lobby: ${nothing}`,
    ],
    ['docs_write', write({}), 'base_version', `docs_write needs the argument ${base}`],
    ['docs_write', write({ data: {} }), 'data.base_version', `data of docs_write needs the key ${base}`],
    [
      'docs_write',
      write({ base_version: 'one' }),
      'base_version',
      '"base_version" in docs_write must be an integer from 1 to 1000; a string was sent',
    ],
    [
      'docs_write',
      write({ base_version: 1, data: { base_version: 1 } }),
      'data',
      'docs_write takes base_version either as a separate argument or inside data, not both: omit data',
    ],
    [
      'docs_write',
      write({ title: 'A title', data: { base_version: 1 } }),
      'data',
      'docs_write takes title either as a separate argument or inside data, not both: omit data',
    ],
    ['post', { text: 'x', formt: 'text' }, 'formt', 'post has no argument "formt"; did you mean format?'],
    ['post', { text: 'x', schema: 1 }, 'schema', expect.stringContaining('post has no argument "schema"') as never],
    [
      'post',
      { text: 'x', supersedes: 'x' },
      'supersedes',
      expect.stringContaining('"supersedes" in post must') as never,
    ],
    ['post', { text: 'x', supersedes: '0'.repeat(32) }, 'supersedes', expect.any(String) as never],
    ['docs_write', write({ data: 'hello' }), 'data', `${object}; a string was sent`],
    ['docs_write', write({ data: '[1]' }), 'data', `${object}; an array was sent`],
    ['docs_write', write({ data: 5 }), 'data', `${object}; a number was sent`],
    ['docs_write', write({ data: '{}' }), 'data.base_version', `data of docs_write needs the key ${base}`],
    [
      'docs_write',
      write({ data: { base_versoin: 1 } }),
      'data.base_versoin',
      'data of docs_write has no key "base_versoin"; did you mean "base_version"?',
    ],
    [
      'post',
      { text: 'x', data: { colour: 'red' } },
      'data.colour',
      'data of post has no key "colour": its keys are format, supersedes, source',
    ],
    ['vote', { event_id: '0'.repeat(32) }, 'value', 'vote needs the argument "value": one of 1, -1, 0'],
    ['post', { txet: 'x' }, 'txet', 'post has no argument "txet"; did you mean text?'],
    [
      'tools_call',
      { target: 'broadside:hash', body: { text: 'x', warmth: [0.7] } },
      'body',
      '"body" in tools_call contains 0.7, and commands have only integers up to 9007199254740991: send "body" as a string with its JSON text',
    ],
    [
      'tools_call',
      { target: 'broadside:hash', data: { query: { id: 2 ** 53 } } },
      'data.query',
      '"query" in data of tools_call contains 9007199254740992, and commands have only integers up to 9007199254740991: write it as a string',
    ],
    [
      'event_get',
      { event_id: '0'.repeat(32), flavor: 1 },
      'flavor',
      'event_get has no argument "flavor"; its arguments are event_id',
    ],
  ]
  for (const [tool, given, field, message] of cases) {
    const { result } = await callTool(board, tool, given, token)
    expect([tool, given, result]).toMatchObject([
      tool,
      given,
      { isError: true, structuredContent: { error: { field, message } } },
    ])
  }
  // JSON text of an object is accepted like the object, with or without its version.
  const made = (await callTool(board, 'docs_create', { text: 'x', data: '{"title":"By text"}' }, token)).result
  const { doc } = made.structuredContent as { doc: { id: string; title: string } }
  expect(doc.title).toBe('By text')
  const next = { target: doc.id, text: 'y', data: '{"schema":1,"base_version":1}' }
  expect((await callTool(board, 'docs_write', next, token)).result).toMatchObject({
    structuredContent: { doc: { version: 2 } },
  })
  const flat = { target: doc.id, text: 'z', base_version: 2, title: 'By arguments' }
  expect((await callTool(board, 'docs_write', flat, token)).result).toMatchObject({
    structuredContent: { doc: { version: 3, title: 'By arguments' } },
  })
  const first = (await callTool(board, 'docs_read', { target: doc.id, version: 1, data: null }, token)).result
  expect(first).toMatchObject({ structuredContent: { doc: { version: 1, text: 'x' } } })
  const nulls = { text: 'nothing but nulls', room: 'nulls', page: null, data: null, flavor: null }
  expect((await callTool(board, 'post', nulls, token)).result.isError).toBeUndefined()
})

test('a call of an unknown tool suggests the one that was probably meant', async () => {
  expect(await callTool(board, 'evnets_list', {})).toMatchObject({
    error: { code: -32602, message: 'there is no tool evnets_list: did you mean events_list?' },
  })
  expect(await callTool(board, 'nothing_like_it', {})).toMatchObject({
    error: { code: -32602, message: 'there is no tool nothing_like_it: tools/list at /mcp?tools=all has all of them' },
  })
})

test('a call of an operation that no sign-in may do says to sign it and to use the tool command', async () => {
  const untooled = operations.filter(({ scope }) => scope === undefined || scope === 'board:operate')
  expect(untooled.map(({ name }) => name)).toEqual(expect.arrayContaining(['credit.transfer', 'identity.rotate']))
  for (const { name } of untooled) {
    const tool = name.replaceAll('.', '_')
    const message = `${tool} is not a tool, because no sign-in may do it: sign ${name} with your own key, and send it with the tool command`
    expect(await callTool(board, tool, {})).toMatchObject({ error: { code: -32602, message } })
  }
})

test('a post to a handle is signed with the id of its owner', async () => {
  const client = await Client.of({ address: board })
  const ben = person('mcp ben')
  await client.command(ben, { operation: 'identity.register', handle: 'mcp-ben' })
  const { result } = await callTool(board, 'post', { text: 'for you', to: '@mcp-ben' }, token)
  const { event } = result.structuredContent as { event: { event_id: string; to: string } }
  expect(event.to).toBe(ben.id)
  const { event: read } = (await client.get(`/api/events/${event.event_id}`)).data
  expect(JSON.parse(read!.signed_payload!).command.to).toBe(ben.id)
  const unknown = (await callTool(board, 'post', { text: 'for you', to: '@mcp-nobody' }, token)).result
  expect(unknown).toMatchObject({ isError: true, structuredContent: { error: { code: 'not_found', field: 'to' } } })
  client.close()
})
