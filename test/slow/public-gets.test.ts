/**
 * No public GET is answered 500 or not at all: every path of the API and every page, with every room of the board and with invalid values,
 * on a board where nobody has written yet and on one that has one of everything.
 */
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { namesOf } from '../../actors/kernel/operation.ts'
import { operations } from '../../actors/operations.ts'
import { pages } from '../../src/board/pages.ts'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { schemaErrors } from '../support/json-schema.ts'
import { randomPart } from '../support/random-part.ts'
import { fillSampleBoard } from '../support/sample-board.ts'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 })

const zeros = (length: number): string => '0'.repeat(length)
const strange = [
  ...['', ' ', '0', '-1', '1', '1.5', '1e2', '200', '201', '2147483648', '9007199254740993', 'NaN', 'null', '[]', '{}'],
  ...[
    '__proto__',
    'constructor',
    'hasOwnProperty',
    'toString',
    '@tools',
    '@market',
    '@registry',
    '.',
    '..',
    '*',
    '"',
    "'",
  ],
  ...[
    zeros(32),
    zeros(64),
    `s_${zeros(16)}`,
    `t_${zeros(32)}`,
    'broadside',
    'broadside:hash',
    'tlog-proof',
    'asc',
    'a,b,,',
  ],
  ...[
    'ÄÖ',
    '\u0000',
    '\ud83d\ude00',
    '\u202e',
    'x'.repeat(65),
    'x'.repeat(300),
    'a*',
    'a b OR c NEAR "',
    '2026a',
    'main',
  ],
  ...['open', 'resolved', 'private', 'works', 'market', 'page', 'ledger'],
]
/** As they are in a URL, and forms that no encoder produces. */
const written = [...strange.map(encodeURIComponent), '%', '%zz', '%ff', '%ed%a0%80', '+', '%2e%2e']

/** Paths that stream for as long as the reader stays, or compress much. */
const streams: readonly (readonly [path: string, query: readonly string[]])[] = [
  ['/tail/{room}', ['last', 'token']],
  ['/v1/export', ['stream', 'room', 'since', 'until', 'cursor', 'limit']],
  ['/a/{id}', ['download', 'token']],
  ['/log/{log}', []],
  ['/log/2026a/{name}', []],
  ['/log/2026a/tile/0/{n}', []],
  ['/log/2026a/tile/entries/{n}', []],
  ['/c64/{command}', []],
  ['/in/{receiver}', []],
  ['/embed/v1.js', []],
  ['/{anything}', ['x']],
  ...['/api/stats', '/time', '/metrics', '/healthz', '/capabilities', '/openapi.json', '/for-agents', '/llms.txt'].map(
    (path): [string, string[]] => [path, ['x']],
  ),
  ...['/robots.txt', '/icon.svg', '/log/vkey', '/log/policy', '/mcp'].map((path): [string, string[]] => [path, ['x']]),
]

type Modlog = { readonly entries: readonly object[] }
type Capabilities = { readonly data: { readonly service_identity: { readonly id: string } } }
type Place = { readonly path: string; readonly query: readonly string[] }

const places: readonly Place[] = [
  ...operations.flatMap(({ get }) =>
    get === undefined ? [] : [{ path: get.path, query: get.query.flatMap(namesOf) }],
  ),
  ...pages.map(({ path, query = [] }) => ({ path, query })),
  ...streams.map(([path, query]) => ({ path, query })),
]

describe.each(randomPart(['uws', 'node']))('on %s', (engine) => {
  let board: Board
  /** Names of what exists: rooms, events, documents, works, people, logs. */
  let known: Readonly<Record<string, readonly string[]>>

  beforeAll(async () => {
    board = await startBoard({ directory: boardDirectory(), env: { HTTP_ENGINE: engine, SHARDS: '2' } })
  })
  afterAll(() => board.stop())

  async function namesOf(): Promise<typeof known> {
    const data = async (path: string) =>
      (
        (await (await fetch(`${board.address}${path}`)).json()) as {
          data: Record<string, readonly Record<string, string>[]>
        }
      ).data
    const pick = (list: readonly Record<string, string>[] | undefined, key: string) =>
      (list ?? []).flatMap((each) => each[key] ?? [])
    const rooms = pick((await data('/api/rooms?limit=200')).rooms, 'name')
    const events = pick((await data('/api/events?limit=100')).events, 'event_id')
    const docs = pick((await data('/api/docs')).docs, 'id')
    const works = pick((await data('/api/works')).works, 'id')
    const identities = pick((await data('/api/identities')).identities, 'id')
    return {
      room: rooms,
      event_id: [...events, ...works],
      target: [...docs, ...identities],
      message: events,
      id: [...events, ...docs],
    }
  }

  const valuesOf = (name: string): readonly string[] => known[name] ?? []
  /** A default value for a parameter: a room for one that names a room, else anything. */
  const usual = (name: string): string => valuesOf(name)[0] ?? (name === 'room' ? 'lobby' : '1')

  /** Every parameter of a path with every value in turn, the others at their defaults; and its query parameters alone, without the rest. */
  function urlsOf({ path, query }: Place): string[] {
    const names = [...path.matchAll(/\{(\w+)(?:\.{3})?\}/g)].map(([, name]) => name!)
    const fill = (given: Readonly<Record<string, string>>) =>
      path.replace(/\{(\w+)(?:\.{3})?\}/g, (_, name: string) => given[name] ?? usual(name))
    const urls = [fill({})]
    for (const name of names)
      for (const value of randomPart([...valuesOf(name), ...written])) urls.push(fill({ [name]: value }))
    for (const name of query) {
      for (const value of randomPart([...valuesOf(name), ...written])) {
        urls.push(`${fill({})}?${name}=${value}`)
        if (query.includes('room') && name !== 'room') urls.push(`${fill({})}?room=lobby&${name}=${value}`)
      }
    }
    return urls
  }

  async function bad(urls: readonly string[]): Promise<string[]> {
    const found: string[] = []
    const left = new Set(urls).values()
    const worker = async (): Promise<void> => {
      for (const url of left) {
        // For a waiting poll and a stream the status is enough; a wait for news is aborted immediately.
        const ending = new AbortController()
        const wait = /[?&]wait=(?!0)/.test(url)
        const asked = fetch(`${board.address}${url}`, {
          signal: ending.signal,
          redirect: 'manual',
          headers: { accept: 'text/html' },
        })
        if (wait) setTimeout(() => ending.abort('waited'), 500)
        await asked.then(
          async ({ status, body }) => {
            if (status >= 500) found.push(`${status} ${url}`)
            await body?.cancel().catch(() => {})
            ending.abort('read')
          },
          (error: unknown) => {
            if (error !== 'waited') found.push(`${error} ${url}`)
          },
        )
      }
    }
    await Promise.all(Array.from({ length: 8 }, worker))
    return found
  }

  test('the moderation log of the board’s own room names the board, which signed no command there', async () => {
    const { data } = (await (await fetch(`${board.address}/api/modlog?room=reviews`)).json()) as { data: Modlog }
    const { service_identity } = ((await (await fetch(`${board.address}/capabilities`)).json()) as Capabilities).data
    expect(schemaErrors('RoomModlogResult', data)).toEqual([])
    expect(data.entries).toMatchObject([{ seq: 1, action: 'room.policy.set', actor: { id: service_identity.id } }])
    expect(data.entries[0]).not.toHaveProperty('signature')
  })

  test('an empty board answers all of them', async () => {
    known = await namesOf()
    expect(known.room).toEqual(expect.arrayContaining(['lobby', 'reviews']))
    expect(await bad(places.flatMap(urlsOf))).toEqual([])
  })

  test('a board with one of everything answers all of them', async () => {
    const { client } = await fillSampleBoard(board.address)
    client.close()
    known = await namesOf()
    expect(await bad(places.flatMap(urlsOf))).toEqual([])
  })
})
