/**
 * The path of one command, whichever interface it came through: shape -> address limit -> signature -> operation and fields -> the actor
 * that decides -> answer.
 *
 * This is the hot path, so it uses callbacks instead of promises: a command costs one parse, one hash, one slot in a signature batch, and
 * one letter. Nothing here depends on HTTP except the status of a refusal.
 */

import { hash } from 'node:crypto'
import { type Command, fields } from '../../actors/kernel/fields.ts'
import { isSigned } from '../../actors/kernel/operation.ts'
import { type Refusal, refusal, tooBusy } from '../../actors/kernel/refusals.ts'
import { type AnsweredBy, type AnyReadName, operationByName, type ReadOperation } from '../../actors/operations.ts'
import { delegationOver, staleTimestampMessage, windowSeconds } from '../../actors/records/write.ts'
import type { BlobIntake } from '../attachments/intake.ts'
import { checkOperation, isGiven, readCommand } from '../command/check.ts'
import type { Reading } from '../command/clerk.ts'
import { beyondScope, isOperator } from '../command/dispatch.ts'
import type { LiveFacts } from '../command/live-facts.ts'
import type { Services } from '../command/plan.ts'
import type { Actors, Client, CommandPath, ReadPath } from '../command/ports.ts'
import { readReply } from '../command/reply.ts'
import {
  type CommandSource,
  envelope,
  isWhole,
  KeyCache,
  type SignedCommand,
  type Signer,
} from '../command/verified.ts'
import type { Updates } from '../follow/updates.ts'
import { pollOf, updatesRead } from '../follow/wait-limit.ts'
import { type Respond, refused } from '../format/reply.ts'
import { decodeBytes64, identityId, signingBytes } from '../format/signing.ts'
import type { ScreeningQueue } from '../moderation/screening.ts'
import type { DurationHistograms } from '../observe.ts'
import type { Throttle } from '../rates/throttle.ts'
import { type AnswerOf, dataOf, ok, type ReadCall, type ReadRequest, type Take, unending } from '../reads/read.ts'
import { readReceivers } from '../receive-urls/list.ts'
import type { Calls } from '../tool-calls/service.ts'
import type { ToolProbes } from '../tools/service.ts'
import type { Checks, Verdict } from '../verify/verifier.ts'
import type { WebhookService } from '../webhooks/service.ts'
import type { Clerks } from '../workers/clerks.ts'
import type { Welcome } from '../works/welcome.ts'
import { DraftedPosts } from './drafted-posts.ts'
import type { ReadRouter } from './read-router.ts'
import { Writes, type WritesOptions } from './writes.ts'

type CommandRouterOptions = {
  readonly serviceId: string
  readonly actors: Actors
  readonly verifier: Pick<Checks, 'verify'>
  /** Whether the actors have as many pending writes as they take. If so, writes are refused before their signatures are checked. */
  readonly isOverloaded: () => boolean
  /** The threads that parse commands off the main thread. */
  readonly clerks: Pick<Clerks, 'read'> | undefined
  readonly throttle: Throttle
  readonly news: LiveFacts
  readonly blobs: BlobIntake
  readonly hooks: WebhookService
  readonly calls: Calls
  readonly tools: ToolProbes
  readonly welcome: Pick<Welcome, 'greet'>
  /** Secret of this board, for deriving names that nobody else can compute. */
  readonly secret: Buffer
  /** Identity id of the board itself. */
  readonly boardIdentity: string
  /** Recovery epoch. */
  readonly generation: string
  /** Whether rates and quotas are enforced. */
  readonly limitsOn: boolean
  /** Bits of work that every post must prove, 0 = none. */
  readonly proofBits: number
  /** Identity ids of the operators. */
  readonly operators: ReadonlySet<string>
  /** Unix seconds. */
  readonly wallSeconds: () => number
  /** Monotonic milliseconds. */
  readonly now: () => number
  /** How long signed commands take, by operation. */
  readonly durations: Pick<DurationHistograms, 'add'>
  readonly random: Services['random']
  readonly soon: Services['soon']
  /** Takes accepted posts that their rooms want screened. */
  readonly screening: Pick<ScreeningQueue, 'add'>
  readonly reads: Pick<ReadRouter, 'read'>
  /** Answers updates.get, now or when there is news. */
  readonly updates: Pick<Updates, 'poll'>
  /** Set if another board decides: passes a command with a valid signature to that board. */
  readonly forward?: Forward | undefined
}

type Verify = Services['verify']
/** How the signature of a command is checked. */
type Check = {
  readonly verify: Verify
  /** The board signed it itself. */
  readonly isOwn?: boolean
  /** Writes are refused without checking the signature, because too many are pending. */
  readonly refusesWrites?: boolean
}
type Forward = (command: SignedCommand, source: CommandSource, respond: Respond) => void

export class CommandRouter implements CommandPath, ReadPath {
  readonly #options: CommandRouterOptions
  readonly #signers: KeyCache
  readonly #check: Check
  readonly #whenOverloaded: Check
  readonly #writes: Writes
  readonly #drafted: DraftedPosts

  constructor(options: CommandRouterOptions) {
    this.#options = options
    this.#signers = new KeyCache(options.news)
    const verify: Verify = (...asked) => options.verifier.verify(...asked)
    this.#check = { verify }
    this.#whenOverloaded = { verify, refusesWrites: true }
    const writes = {
      actors: options.actors,
      throttle: options.throttle,
      news: options.news,
      operators: options.operators,
      screen: (post) => options.screening.add(post),
      read: (request, answer) => this.read(request, answer),
      verify,
      blobs: options.blobs,
      hooks: options.hooks,
      calls: options.calls,
      tools: options.tools,
      welcome: (identity, address) => options.welcome.greet(identity, address),
      secret: options.secret,
      boardIdentity: options.boardIdentity,
      generation: options.generation,
      limitsOn: options.limitsOn,
      wallSeconds: options.wallSeconds,
      proofBits: options.proofBits,
      random: options.random,
      soon: options.soon,
    } satisfies WritesOptions
    this.#writes = new Writes(writes)
    this.#drafted = new DraftedPosts(writes)
  }

  /** Executes a command given as bytes of JSON. */
  execute(body: Buffer, source: CommandSource, respond: Respond): void {
    const { clerks, throttle, now, isOverloaded } = this.#options
    if (isOverloaded()) return this.#execute(body, source, respond, this.#whenOverloaded)
    const begun = now()
    const isRead =
      clerks !== undefined &&
      throttle.checksSignatures(source.address) &&
      clerks.read(body, source.via, (reading) => this.#finish(reading, begun, body, source, respond))
    if (!isRead) this.#execute(body, source, respond, this.#check)
  }

  /**
   * Continues with a clerk's result. The clerk's verdict on the signature is final. Anything but a post that is ready to send is parsed
   * again here.
   */
  #finish(reading: Reading, begun: number, body: Buffer, source: CommandSource, respond: Respond): void {
    if (reading === 'unread') return this.#execute(body, source, respond, this.#check)
    const verdict = typeof reading === 'string' ? reading : 'good'
    const verify: Verify = (_signature, _key, _message, callback) => callback(verdict)
    const plainly = (by: CommandSource) => this.#execute(body, by, respond, { verify })
    const signer = typeof reading === 'string' ? undefined : this.#signers.of(reading[0])
    const isForwarded = this.#options.forward !== undefined
    if (typeof reading === 'string' || signer === undefined || isForwarded) return plainly(source)
    this.#drafted.send({ draft: reading, signer, body, source, plainly }, (reply) => {
      this.#options.durations.add('post', this.#options.now() - begun)
      respond(reply)
    })
  }

  /** The same for commands of the board's own identity: it has just signed them, so the signature is not verified again. */
  executeOwn(body: Buffer, source: CommandSource, respond: Respond): void {
    const verify: Verify = (_signature, key, _message, callback) => {
      if (identityId(key) !== this.#options.boardIdentity)
        throw new Error('only the board itself may skip the check of its signature')
      callback('good')
    }
    this.#execute(body, source, respond, { verify, isOwn: true })
  }

  #execute(body: Buffer, source: CommandSource, respond: Respond, check: Check): void {
    const read = readCommand(body)
    if (!read.ok) return this.#refuse(source, read.fault, respond)
    const command = read.value
    if (isGiven(command.public_key) || isGiven(command.signature)) this.#signed(command, source, respond, check)
    else this.#unsigned(command, source, respond)
  }

  /** Refuses input that is not a command and charges the client's network. A network over its limit gets only the rate-limit refusal. */
  #refuse(source: CommandSource, fault: () => Refusal, respond: Respond): void {
    respond(refused(this.#options.throttle.count(kindOf(source), source) ?? fault()))
  }

  /** `client`: who waits for the answer; the board itself by default. */
  read<Name extends AnyReadName>(request: ReadRequest<Name>, answer: Take<AnswerOf<Name>>, client?: Client): void {
    const { hooks, news, reads } = this.#options
    const read: ReadCall = (asked, take) => reads.read(asked, take, client)
    if (hooks.read(request, answer) || readReceivers(request, { read, delegates: news.delegates }, answer)) return
    read(request, answer)
  }

  #unsigned(command: Command, source: CommandSource, respond: Respond): void {
    const tooMany = this.#options.throttle.count(kindOf(source), source)
    if (tooMany !== undefined) return respond(refused(tooMany))
    const checked = checkOperation(command)
    if (!checked.ok) return respond(refused(checked.refusal))
    const { operation, data } = checked.value
    if (operation.kind === 'write' || isSigned(operation)) {
      return respond(
        refused(refusal('unsigned', `${operation.name} must be signed: see the signing format at /capabilities`)),
      )
    }
    this.#answerRead(readRequest(operation, command, data, ''), source, respond)
  }

  #answerRead(request: ReadRequest, source: CommandSource, respond: Respond): void {
    const { place, ...alone } = source
    if (place !== undefined) return place.read(() => this.#answerRead(request, alone, respond))
    if (request.op === quotaRead)
      return quotaOf(request, source, { ...this.#options, read: (...asked) => this.read(...asked) }, (answer) =>
        respond(readReply(answer)),
      )
    if (request.op === updatesRead && source.follow !== undefined) return source.follow(request)
    if (request.op === updatesRead) return this.#options.updates.poll(pollOf(request.args, request, source), respond)
    this.read(request, (answer) => respond(readReply(answer)), source)
  }

  #signed(command: Command, source: CommandSource, respond: Respond, check: Check): void {
    if (!isWhole(command)) {
      const name = envelope.find((each) => !isGiven(command[each]))!
      const { meaning, rule } = fields[name]
      const message = `a signed command needs ${name}, ${meaning}: ${rule}`
      return this.#refuse(source, () => refusal('missing_field', message, name), respond)
    }
    const { public_key, signature } = command
    const signer = this.#signers.of(public_key)
    if (signer === undefined) return this.#refuse(source, () => malformedKey(public_key), respond)
    const signed = decodeBytes64(signature)
    if (signed === undefined) return this.#refuse(source, () => malformedSignature(signature), respond)
    const tooMany = this.#options.throttle.signaturesObjection(source.address)
    if (tooMany !== undefined) return respond(refused(tooMany))
    const { verify, isOwn, refusesWrites } = check
    if (refusesWrites === true && isWrite(command.operation)) return respond(refused(tooBusy))
    const begun = this.#options.now()
    const bytes = signingBytes(this.#options.serviceId, command)
    verify(signed, signer.key, bytes, (verdict) => {
      if (verdict === 'bad_signature' || verdict === 'bad_key') this.#options.throttle.badSignature(source.address)
      if (verdict !== 'good') return respond(refused(verdictRefusal(verdict, this.#options.serviceId, bytes)))
      const checked = checkOperation(command)
      if (!checked.ok) return this.#refuse(source, () => checked.refusal, respond)
      if (signer.id === this.#options.boardIdentity && isOwn !== true) return respond(refused(notTheBoard))
      const { durations, now } = this.#options
      const { name } = checked.value.operation
      this.#dispatch({ command, ...checked.value, signer, signature: signed, bytes, source }, (reply) => {
        durations.add(name, now() - begun)
        respond(reply)
      })
    })
  }

  #dispatch({ command, operation, data, signer, signature, bytes, source }: Checked, respond: Respond): void {
    const { delegates } = this.#options.news
    if (delegates.isStale) return respond(refused(keysUnsure))
    if (signer.delegate?.isUnread) return respond(refused(delegationUnread))
    const beyond = signer.delegate === undefined ? undefined : beyondScope(operation, signer.delegate)
    if (beyond !== undefined) return respond(refused(beyond))
    const { forward } = this.#options
    if (operation.kind === 'read') {
      if (forward !== undefined && knownToLeader.has(operation.name))
        return forwardReadInOrder(forward, command, source, respond)
      const now = this.#options.wallSeconds()
      if (Math.abs(now - command.timestamp) > windowSeconds) {
        const message = staleTimestampMessage(command.timestamp, now)
        return respond(refused(refusal('stale_timestamp', message, 'timestamp')))
      }
      if (this.#options.news.isRetired(signer.text))
        return respond(
          refused(
            refusal(
              'key_rotated',
              'this identity has moved to a new key, and the old one is refused: sign with the new one',
              'public_key',
            ),
          ),
        )
      if (signer.delegate !== undefined && delegates.isOver(signer.delegate))
        return respond(refused(refusal('forbidden', delegationOver, 'public_key')))
      const tooMany = this.#options.throttle.count('reads', source)
      if (tooMany !== undefined) return respond(refused(tooMany))
      const request = readRequest(operation, command, data, signer.id)
      const operator = isOperator(signer, this.#options.operators)
      const handle = this.#options.news.handles.get(signer.id)
      const isSuspended = this.#options.news.isSuspended(signer.id)
      const reader = { operator, isSuspended, key: signer.text, ...(handle === undefined ? {} : { handle }) }
      return this.#answerRead({ ...request, ...reader }, source, respond)
    }
    const sha = hash('sha256', bytes, 'buffer')
    if (forward !== undefined) return forwardInOrder(forward, { command, sha, source }, respond)
    this.#writes.run({ command, operation, data, signer, signature, bytes, sha, source }, respond)
  }
}

/** Commands that arrived together are carried out one after the other. */
function forwardInOrder(
  forward: Forward,
  { command, sha, source }: { readonly command: SignedCommand; readonly sha: Buffer; readonly source: CommandSource },
  respond: Respond,
): void {
  const { place } = source
  const go = (): void =>
    forward(command, source, (reply) => {
      respond(reply)
      place?.sent()
    })
  if (place === undefined) go()
  else place.write(sha.toString('hex', 0, 16), go)
}

/** Reads whose answer is in the memory of the leader. */
const knownToLeader: ReadonlySet<string> = new Set([
  'quota.get',
  'webhook.deliveries',
  'webhook.list',
] satisfies AnyReadName[])

function forwardReadInOrder(forward: Forward, command: SignedCommand, source: CommandSource, respond: Respond): void {
  const { place, ...alone } = source
  const ask = (): void => forward(command, alone, respond)
  if (place === undefined) ask()
  else place.read(ask)
}

/** A command whose signature and fields are valid. */
type Checked = Extract<ReturnType<typeof checkOperation>, { ok: true }>['value'] & {
  readonly command: SignedCommand
  readonly signer: Signer
  readonly signature: Buffer
  readonly bytes: Buffer
  readonly source: CommandSource
}

/** A leaked copy of the board's key is useless here. */
const notTheBoard = refusal(
  'forbidden',
  'this is the identity of the board itself, which signs its own commands internally: no interface accepts them',
  'public_key',
)

const keysUnsure = refusal('overloaded', 'this board is still loading its delegations: try again', undefined, 1)

const delegationUnread = refusal(
  'overloaded',
  'the delegation of this key cannot be read from the disk of this board right now: try again in a minute',
  'public_key',
  60,
)

function verdictRefusal(verdict: Exclude<Verdict, 'good'>, serviceId: string, bytes: Buffer): Refusal {
  if (verdict === 'bad_key')
    return refusal('bad_key', 'public_key is not a canonical, torsion-free Ed25519 key', 'public_key')
  if (verdict === 'bad_signature') {
    // Length and hash of the bytes to sign, so that a client that signed other bytes sees the difference immediately.
    return refusal(
      'bad_signature',
      `the signature does not match this command and key. The bytes to sign here have service "${serviceId}", ` +
        `length ${bytes.length} and SHA-256 ${hash('sha256', bytes, 'hex')}: compare yours, and the examples at /capabilities`,
      'signature',
    )
  }
  return refusal('overloaded', 'too many signatures are waiting to be checked: try again', undefined, 1)
}

function isWrite(operation: string): boolean {
  return operationByName.get(operation)?.kind === 'write'
}

/** An interface whose clients need not sign counts unsigned commands as reads, like a GET. */
function kindOf({ via }: CommandSource): 'reads' | 'unsigned_commands' {
  return via === 'mcp' ? 'reads' : 'unsigned_commands'
}

function malformedKey(text: string): Refusal {
  const message = `public_key must be 43 characters of canonical base64url without padding, the 32 raw bytes of an Ed25519 key; ${text.length} characters were sent`
  return refusal('bad_key', message, 'public_key')
}

function malformedSignature(text: string): Refusal {
  const message = `signature must be 86 characters of canonical base64url without padding, 64 bytes; ${text.length} characters were sent`
  return refusal('bad_signature', message, 'signature')
}

/** A read's arguments: the command's fields and the keys of `data`, in one flat record. */
function readRequest(
  operation: ReadOperation,
  command: Command,
  data: Readonly<Record<string, unknown>>,
  reader: string,
): ReadRequest {
  const args: Record<string, string | number> = {}
  const given: Readonly<Record<string, unknown>> = command
  for (const name of [...operation.required, ...operation.optional]) {
    const value = given[name]
    if (name !== 'data' && isGiven(value)) args[name] = value as string | number
  }
  for (const [name, value] of Object.entries(data)) if (name !== 'schema') args[name] = value as string | number
  return { op: operation.name, args, reader, isCommand: true }
}

type QuotaOptions = Pick<Services, 'throttle' | 'read' | 'blobs'> & {
  readonly calls: Pick<Calls, 'allowance'>
  /** Unix seconds. */
  readonly wallSeconds: () => number
}

/** Answered by the main thread, which keeps the counts. */
const quotaRead = 'quota.get' satisfies AnsweredBy<'main'>

/** What a caller has left of every quota: per identity, per network, and per day. */
function quotaOf(
  { reader: identity, operator = false }: ReadRequest,
  source: CommandSource,
  { throttle, calls, blobs, read, wallSeconds }: QuotaOptions,
  answer: Take,
): void {
  const networks = throttle.networkAllowances(source.address)
  const { reads, unsigned_commands, bad_signatures } = networks[0]!.allowances
  const ofAddress = { reads, unsigned_commands, bad_signatures }
  const scope = { until: unending }
  if (identity === '') return answer(ok({ quota: { allowances: ofAddress, networks } }, scope))
  const { reads: ownReads, ...own } = throttle.allowancesOf(identity)
  const { bytes } = own
  const allowances = { ...ofAddress, ...own, ...(source.signedIn === identity ? { reads: ownReads } : {}) }
  const daily = {
    identity,
    unit: 'byte',
    ...(bytes.limit === undefined ? {} : { daily_bytes: bytes.limit, remaining_bytes: bytes.remaining }),
    used_bytes: bytes.used,
    resets_at: wallSeconds() + bytes.whole_in,
  }
  read({ op: 'blob.usage', args: {}, reader: identity }, (usage) => {
    if (usage === undefined || !usage.ok) return answer(usage)
    const { bytes: used } = dataOf(usage)
    const { bytesMax: limit } = blobs
    const isApart = source.signedIn === identity || operator
    const bounds = Number.isFinite(limit) ? { limit, remaining: Math.max(0, limit - used) } : {}
    calls.allowance(identity, source, (tools) => {
      const counts_apart = throttle.countsApart({ identity, address: source.address, isApart })
      const quota = { ...daily, tools, allowances, networks, counts_apart, attachment_bytes: { used, ...bounds } }
      answer(tools && ok({ quota }, scope))
    })
  })
}
