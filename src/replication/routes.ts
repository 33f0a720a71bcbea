/**
 * The leader's routes for followers under `/replica/`: its identity, the positions of its journals and deliveries, the seal of
 * the stream, missing frames and attachments, and writes to carry out. The answers contain everything in a board, including
 * private rooms, so each request must carry the secret of REPLICA_KEY_FILE.
 */
import { sizes } from '../../actors/kernel/limits.ts'
import { refusal } from '../../actors/kernel/refusals.ts'
import { readBlob } from '../../storage/blob-files.ts'
import type { Disk } from '../../storage/disk.ts'
import { type BoardDirectory, blobsDirectory } from '../board-directory.ts'
import type { CommandPath } from '../command/ports.ts'
import type { CommandSource } from '../command/verified.ts'
import { readKeyOf } from '../format/cursor.ts'
import { foreignJson } from '../format/foreign-json.ts'
import { bodyOf } from '../format/reply.ts'
import type { Exchange, Header, RouteHandler } from '../http/port.ts'
import type { Replies } from '../http/replies.ts'
import type { LogIdentity } from '../log/signed-log.ts'
import type { Throttle } from '../rates/throttle.ts'
import type { AwaitedFrames } from './awaited-frames.ts'
import { isPlace } from './batch.ts'
import type { Ends } from './journals-out.ts'
import { framesWaitMaxMs, goneStatus, type LeaderEnds, type LeaderFacts, packShares } from './leader-answers.ts'
import { bears } from './replica-key.ts'
import type { SharedSettings } from './shared-settings.ts'
import { sealIn } from './stream-seal.ts'

type ReplicaRouteOptions = {
  /** 64 hex. */
  readonly key: string
  readonly disk: Disk
  readonly directory: BoardDirectory
  /** The log that grows. */
  readonly log: LogIdentity
  /** All logs, oldest first. */
  readonly logs: readonly LogIdentity[]
  readonly settings: SharedSettings
  readonly front: Pick<CommandPath, 'execute'>
  /** Counts the boards that have led. */
  readonly epoch: number
  /** A follower that is at these ends shows everything answered so far. */
  readonly answered: () => Ends
  /** How far followers may copy the journals, and how far they are durable; undefined if not known yet. */
  readonly ends: () => Ends | undefined
  readonly durable: () => Ends | undefined
  readonly frames: AwaitedFrames['ask']
  /** Where another box would continue deliveries to webhooks. */
  readonly deliveries: () => Promise<object | undefined>
  readonly throttle: Throttle
  readonly addressOf: (exchange: Exchange) => string
  readonly replies: Replies
}

const unshared: readonly Header[] = [['cache-control', 'no-store']]
const json: readonly Header[] = [['content-type', 'application/json; charset=utf-8'], ...unshared]
const bytes: readonly Header[] = [['content-type', 'application/octet-stream'], ...unshared]

/** Enough for the places of as many shards as there can be. */
const placesBytesMax = 64 * 1024
/** A forwarded command is text in JSON, where each quote and backslash is escaped again; a file has none. */
const forwardedBytesMax = Math.max(2 * sizes.command_bytes, sizes.body_bytes)

export function replicaRoute(options: ReplicaRouteOptions): RouteHandler {
  return (exchange, path) => {
    if (!bears(exchange.header('authorization'), options.key)) return refuse(options, exchange)
    const isPost = path === 'frames' || path === 'command'
    const method = isPost ? 'POST' : 'GET'
    if (exchange.method !== method) return options.replies.wrongMethod(exchange, method)
    if (path === 'board') return exchange.reply(200, json, JSON.stringify(factsOf(options)))
    if (path === 'seal')
      return exchange.reply(200, json, JSON.stringify(sealIn(options.disk, options.directory.path) ?? {}))
    if (path === 'deliveries') return sendDeliveries(options, exchange)
    if (path === 'ends') return sendEnds(options, exchange)
    if (path === 'frames')
      return withBody(options, exchange, placesBytesMax, (body) => sendFrames(options, exchange, body))
    if (path === 'command')
      return withBody(options, exchange, forwardedBytesMax, (body) => carryOut(options, exchange, body))
    const [, room = '', sha256 = ''] = /^blob\/([\w-]{1,64})\/([0-9a-f]{64})$/.exec(path) ?? []
    const file = room === '' ? undefined : readBlob(options.disk, blobsDirectory(options.directory.path), room, sha256)
    if (file === undefined) return exchange.reply(goneStatus, json, '{}')
    exchange.reply(200, bytes, file)
  }
}

/** Clients that are not followers find nothing here; guesses are counted. */
function refuse({ throttle, addressOf, replies }: ReplicaRouteOptions, exchange: Exchange): void {
  const tooMany = throttle.count('unsigned_commands', { address: addressOf(exchange) })
  replies.refuse(
    exchange,
    tooMany ??
      refusal(
        'forbidden',
        'this path is for the followers of this board, which authenticate with the key in its REPLICA_KEY_FILE',
      ),
  )
}

function withBody(
  { replies }: ReplicaRouteOptions,
  exchange: Exchange,
  limit: number,
  take: (body: Buffer) => void,
): void {
  exchange.readBody(limit, (result) => {
    if (result.ok) return take(result.body)
    const message = `a follower forwarded at least ${result.sentAtLeast} bytes, and its leader accepts ${limit}: send a smaller command, or send it to the leader`
    replies.refuse(exchange, refusal('too_large', message))
  })
}

/** The follower is of a release that this one does not understand. */
function refuseUnknown({ replies }: ReplicaRouteOptions, exchange: Exchange): void {
  const message = 'this board does not understand what a follower sent: run the same release on both'
  replies.refuse(exchange, refusal('invalid_field', message))
}

function factsOf({ directory, log, logs, settings }: ReplicaRouteOptions): LeaderFacts {
  const { id, publicKey } = directory.identity
  return {
    facts: directory.facts,
    identity: { id, publicKey },
    log,
    logs,
    settings,
    readKey: Buffer.from(readKeyOf(directory.cursorKey)).toString('hex'),
  }
}

function sendEnds({ ends, durable, epoch }: ReplicaRouteOptions, exchange: Exchange): void {
  const [found, written] = [ends(), durable()]
  if (found === undefined || written === undefined) exchange.reply(503, json, '{}')
  else exchange.reply(200, json, JSON.stringify({ ...found, durable: written, epoch } satisfies LeaderEnds))
}

function sendDeliveries({ deliveries }: ReplicaRouteOptions, exchange: Exchange): void {
  void deliveries().then((found) => {
    if (!exchange.ended) exchange.reply(200, json, JSON.stringify(found ?? null))
  })
}

function sendFrames(options: ReplicaRouteOptions, exchange: Exchange, body: Buffer): void {
  const { places, wait = 0 }: Readonly<Record<string, unknown>> = Object(foreignJson(body.toString('utf8')))
  if (!Array.isArray(places) || !places.every(isPlace) || typeof wait !== 'number')
    return refuseUnknown(options, exchange)
  options.frames(places, Math.min(wait, framesWaitMaxMs), (found) => {
    if (exchange.ended) return
    if (found === undefined) exchange.reply(204, unshared, '')
    else if (found === 'busy') exchange.reply(503, json, '{}')
    else if ('problem' in found) exchange.reply(found.isForGood ? 409 : 503, json, JSON.stringify(found))
    else exchange.reply(200, bytes, packShares(found))
  })
}

/** The interface a command came through. A follower never passes on the board's own commands. */
function isVia(via: unknown): via is string {
  return typeof via === 'string' && /^[a-z0-9_-]{1,16}$/.test(via) && via !== 'board'
}

/** Replies with the answer for the follower's client, and how far a follower must be to show the result. */
function carryOut(options: ReplicaRouteOptions, exchange: Exchange, body: Buffer): void {
  const { command, address, via }: Readonly<Record<string, unknown>> = Object(foreignJson(body.toString('utf8')))
  if (typeof command !== 'string' || typeof address !== 'string' || !isVia(via)) return refuseUnknown(options, exchange)
  const source: CommandSource = { via, address }
  const { front, answered } = options
  front.execute(Buffer.from(command), source, (reply) => {
    if (reply === undefined) return exchange.drop()
    const { status, retryAfter } = reply
    if (!exchange.ended)
      exchange.reply(200, json, JSON.stringify({ status, retryAfter, body: bodyOf(reply), ends: answered() }))
  })
}
