/**
 * A board in one file, behind a real socket, for testing only the client: it checks signatures, requires parents to exist before their
 * children, and recognizes request ids, as the specification says. Nothing is durable.
 */

import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import {
  commandId,
  decodeBytes32,
  decodeBytes64,
  identityId,
  type SignableCommand,
  signingBytes,
} from '../../../src/format/signing.ts'
import { createOpensslBackend } from '../../../src/verify/backends.ts'

export type StoredPost = {
  readonly eventId: string
  readonly command: Record<string, string>
  readonly authorId: string
}

export type SmallBoard = {
  readonly url: string
  /** Without /v1/commands, like boards before it existed. */
  isOlder: boolean
  readonly posts: StoredPost[]
  /** If it returns something, that replaces the answer to a command: status and body. */
  intercept: (command: Record<string, string>) => { status: number; code: string; retryAfter?: number } | undefined
  /** Largest number of commands that were open at once. */
  openMax(): number
  close(): Promise<void>
}

export const smallServiceId = 'bs-0123456789abcdef'

export async function startSmallBoard(): Promise<SmallBoard> {
  const posts: StoredPost[] = []
  const byRequest = new Map<string, StoredPost>()
  const byId = new Map<string, StoredPost>()
  const backend = createOpensslBackend()
  let open = 0
  let openMax = 0

  const decide = (body: string): { status: number; json: unknown; retryAfter?: number | undefined } => {
    const command = JSON.parse(body) as Record<string, string>
    const refuse = (code: string, status = 400, retryAfter?: number): ReturnType<typeof decide> => ({
      status,
      retryAfter,
      json: { ok: false, error: { code, message: `refused with ${code}`, retry_after: retryAfter } },
    })
    const intercepted = board.intercept(command)
    if (intercepted !== undefined) return refuse(intercepted.code, intercepted.status, intercepted.retryAfter)
    const bytes = signingBytes(smallServiceId, command as unknown as SignableCommand)
    const key = decodeBytes32(command.public_key!)!
    if (!backend.verify(decodeBytes64(command.signature!)!, bytes, key)) return refuse('bad_signature')
    const accept = (post: StoredPost, duplicate: boolean): ReturnType<typeof decide> => ({
      status: 200,
      json: {
        ok: true,
        data: { event_id: post.eventId, receipt: { event_id: post.eventId, ...(duplicate ? { duplicate } : {}) } },
      },
    })
    const known = byRequest.get(`${command.public_key} ${command.request_id}`)
    if (known !== undefined) {
      const isSame = (['room', 'text', 'reply_to', 'handle'] as const).every(
        (field) => known.command[field] === command[field],
      )
      return isSame ? accept(known, true) : refuse('request_id_reused')
    }
    if (command.reply_to !== undefined && !byId.has(command.reply_to)) return refuse('not_found')
    const post = { eventId: commandId(bytes).eventId, command, authorId: identityId(key) }
    posts.push(post)
    byId.set(post.eventId, post)
    byRequest.set(`${command.public_key} ${command.request_id}`, post)
    return accept(post, false)
  }

  const limits = () => (board.isOlder ? {} : { batch_lines: 1_000, body_bytes: 2 * 1024 * 1024 })
  /** Answers come in another order than the lines. */
  const decideAll = (body: Buffer): string => {
    const lines = body.toString('utf8').trimEnd().split('\n')
    const answers = lines.map((line, at) => {
      const { status, json } = decide(line)
      return `${JSON.stringify({ line: at + 1, status, ...Object(json) })}\n`
    })
    return answers.reverse().join('')
  }

  const server: Server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      open += 1
      openMax = Math.max(openMax, open)
      // Answers come in another order than the requests, as from several rooms.
      setTimeout(
        () => {
          open -= 1
          if (request.url === '/v1/commands' && !board.isOlder)
            return void response.end(decideAll(Buffer.concat(chunks)))
          const { status, json, retryAfter } =
            request.url === '/capabilities'
              ? {
                  status: 200,
                  json: {
                    ok: true,
                    data: { service_id: smallServiceId, log: { origin: 'o', vkey: 'v' }, limits: limits() },
                  },
                }
              : decide(Buffer.concat(chunks).toString('utf8'))
          const text = JSON.stringify(json)
          response.writeHead(status, {
            'Content-Length': Buffer.byteLength(text),
            ...(retryAfter === undefined ? {} : { 'Retry-After': String(retryAfter) }),
          })
          response.end(text)
        },
        (posts.length * 7) % 3,
      )
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const board: SmallBoard = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    posts,
    isOlder: false,
    intercept: () => undefined,
    openMax: () => openMax,
    close: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
  return board
}
