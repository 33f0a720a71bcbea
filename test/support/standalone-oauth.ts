/** The authorization server without a board: nothing is stored, and the network answers as a test says. */

import { createHash } from 'node:crypto'
import { join } from 'node:path'
import type { WriteLetter } from '../../actors/records/write.ts'
import { systemClock } from '../../src/clock.ts'
import { LiveFacts } from '../../src/command/live-facts.ts'
import type { TakeReply } from '../../src/command/ports.ts'
import type { Answered, NotAnswered, OutgoingRequest } from '../../src/outgoing/request.ts'
import { machine } from '../../src/platform.ts'
import { replyWith } from '../../src/reads/read.ts'
import { Oauth, type OauthResponse } from '../../src/sign-in/oauth.ts'
import { SignInKeys } from '../../src/sign-in/sign-in-keys.ts'
import { machineDisk } from '../../storage/machine-disk.ts'
import { scratchDirectory } from './scratch.ts'

export type StandaloneOauth = {
  readonly oauth: Oauth
  readonly get: (url: string) => Promise<OauthResponse>
  readonly post: (url: string, body: object) => Promise<OauthResponse>
  readonly form: (url: string, fields: Readonly<Record<string, string>>) => Promise<OauthResponse>
  /** Requests to the network. */
  readonly requests: readonly OutgoingRequest[]
}

/** `answer`: for every requested address; `records`: the stored ones of a kind, whatever their name; `onWrite` is called for each write. */
export function standaloneOauth({
  answer,
  fetchWait = 0,
  keys = new SignInKeys(machineDisk, join(scratchDirectory(), 'sign-in.keys')),
  records = {},
  onWrite = () => {},
}: {
  answer: Answered | NotAnswered
  fetchWait?: number
  keys?: SignInKeys
  records?: Readonly<Record<string, object>>
  onWrite?: (letter: WriteLetter) => void
}): StandaloneOauth {
  const folder = scratchDirectory()
  const requests: OutgoingRequest[] = []
  const oauth = new Oauth({
    disk: machineDisk,
    news: new LiveFacts(systemClock),
    name: 'Broadside',
    address: 'http://board.example',
    serviceId: 'bs-test',
    boardIdentity: '0'.repeat(64),
    actors: {
      write: (letter, callback) => {
        onWrite(letter)
        const give: TakeReply = callback
        give({ ok: true, reply: {} }, undefined)
      },
    },
    read: ({ args }, callback) => {
      const found = records[String(args.key).split(':')[0]!]
      callback({
        ok: true,
        reply: replyWith(JSON.stringify(found === undefined ? {} : { payload: JSON.stringify(found) })),
        until: 0,
      })
    },
    front: { execute: (_body, _door, respond) => respond(undefined) },
    wallSeconds: () => 1_790_000_000,
    now: systemClock.monotonicMs,
    random: machine.random,
    keys,
    tokenKeyFile: join(folder, 'oauth.key'),
    cookieSecret: 'secret',
    fetchWait: () => fetchWait,
    chargeRotation: () => undefined,
    signedOut: () => Promise.resolve(),
    fault: (error) => {
      throw error
    },
    outgoing: {
      request: (request) => {
        requests.push(request)
        return Promise.resolve(answer)
      },
    },
  })
  const handle = (method: string, url: string, body: Buffer, headers: Record<string, string>) =>
    oauth.handle({ method, url, headers, body, address: '127.0.0.1' })
  return {
    oauth,
    get: (url) => handle('GET', url, Buffer.alloc(0), {}),
    form: (url, fields) =>
      handle('POST', url, Buffer.from(String(new URLSearchParams(fields))), {
        'content-type': 'application/x-www-form-urlencoded',
      }),
    post: (url, body) => handle('POST', url, Buffer.from(JSON.stringify(body)), { 'content-type': 'application/json' }),
    requests,
  }
}

/** The authorization request that a client sends its user with. `more`: replaces parameters. */
export function authorizeUrl(more: Readonly<Record<string, string>>): string {
  const query = new URLSearchParams({
    response_type: 'code',
    scope: 'board:read',
    resource: 'http://board.example/mcp',
    code_challenge_method: 'S256',
    code_challenge: createHash('sha256').update('x').digest('base64url'),
    ...more,
  })
  return `/oauth/authorize?${query}`
}

export const headerOf = ({ headers }: OauthResponse, wanted: string): string =>
  headers.find(([name]) => name === wanted)?.[1] ?? ''

/** An answer of the network with a JSON body. */
export const jsonAnswer = (body: object, status = 200): Answered => ({
  ok: true,
  status,
  headers: { 'content-type': ['application/json'] },
  body: Buffer.from(JSON.stringify(body)),
})
