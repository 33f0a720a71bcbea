/**
 * The path of one command, whatever door it came by:
 * shape -> address limit -> signature -> operation and fields -> the actor that decides -> answer.
 *
 * Callbacks, not promises: this is the hot path, and a command costs one parse, one hash, one place in a signature batch
 * and one letter. Nothing here knows of HTTP beyond the status that a refusal carries.
 */

import { hash } from 'node:crypto'
import { type FieldName, fields } from '../../actors/kernel/fields.ts'
import { inside } from '../../actors/kernel/limits.ts'
import { isSigned } from '../../actors/kernel/operation.ts'
import { type Refusal, refusal } from '../../actors/kernel/refusals.ts'
import type { ReadOperation } from '../../actors/operations.ts'
import { shardOf } from '../../actors/shard.ts'
import { delegationOver, staleWords, windowSeconds } from '../../actors/write.ts'
import type { BlobIntake } from '../attachments/intake.ts'
import { monotonicMs } from '../clock.ts'
import { beyondScope, isOperator } from '../delegations/delegated.ts'
import { type Poll, pollOf } from '../follow/wait-limit.ts'
import { decodeBytes64, identityId } from '../format/encoding.ts'
import { signingBytes } from '../format/signing.ts'
import { quotaOf } from '../limits/quota.ts'
import type { Throttle } from '../limits/throttle.ts'
import type { Screened } from '../moderation/screening.ts'
import { ok, type ReadAnswer, type ReadRequest, soonest } from '../reads/read.ts'
import type { Client } from '../search/fair-queue.ts'
import { Searches } from '../search/searches.ts'
import type { Calls } from '../tool-calls/service.ts'
import { readTools } from '../tools/ask-index.ts'
import type { ToolDesk } from '../tools/service.ts'
import type { Verdict } from '../verify/verifier.ts'
import type { Desk } from '../webhooks/service.ts'
import { readWorks, workReads } from '../works/ask-room-and-market.ts'
import { type Command, checkOperation, isGiven } from './check.ts'
import { type Gather, gatherOf, homes } from './gather.ts'
import { type Signer, Signers } from './key-cache.ts'
import type { News } from './live-facts.ts'
import type { Actors, NoAnswer } from './ports.ts'
import { readCommand } from './read-command.ts'
import { type Door, type Respond, readReply, refused } from './reply.ts'
import { resolveRequest, withResolved } from './resolved.ts'
import { Writes, type WritesOptions } from './writes.ts'

export type FrontOptions = {
  readonly serviceId: string
  readonly actors: Actors
  readonly verify: (signature: Buffer, publicKey: Buffer, message: Buffer, callback: (verdict: Verdict) => void) => void
  readonly throttle: Throttle
  readonly news: News
  readonly blobs: BlobIntake
  readonly hooks: Desk
  readonly calls: Calls
  readonly tools: ToolDesk
  readonly welcome: WritesOptions['welcome']
  /** Secret of this board, for names that nobody else can work out. */
  readonly secret: Buffer
  /** Identity id of the board's own voice. */
  readonly boardIdentity: string
  /** Recovery epoch. */
  readonly generation: string
  /** Rates and quotas hold. */
  readonly limitsOn: boolean
  /** Bits of work that every post must prove, 0 = none. */
  readonly proofBits: number
  /** Identity ids of the operators. */
  readonly operators: ReadonlySet<string>
  /** Unix seconds. */
  readonly wallSeconds: () => number
  /** Takes an accepted post that its room wants screened. */
  readonly screen: (post: Screened) => void
  /** Answers updates.get, now or when there is news. */
  readonly poll: (poll: Poll, respond: Respond) => void
  /** The newest signed head, as log.checkpoint answers it. */
  readonly checkpoint: () => ReadAnswer
  /** Who else signs it, as log.witnesses answers. */
  readonly witnesses: () => ReadAnswer
}

const ownClient: Client = { address: '' }

export class Front {
  readonly #options: FrontOptions
  readonly #signers: Signers
  readonly #searches: Searches
  readonly #writes: Writes

  constructor(options: FrontOptions) {
    this.#options = options
    this.#signers = new Signers(options.news)
    const queue = options.limitsOn ? { ...inside.searchQueue, now: monotonicMs } : undefined
    this.#searches = new Searches({ actors: options.actors, queue })
    this.#writes = new Writes({
      actors: options.actors,
      throttle: options.throttle,
      news: options.news,
      operators: options.operators,
      screen: options.screen,
      read: (request, answer) => this.read(request, answer),
      verify: options.verify,
      blobs: options.blobs,
      hooks: options.hooks,
      calls: options.calls,
      tools: options.tools,
      welcome: options.welcome,
      secret: options.secret,
      boardIdentity: options.boardIdentity,
      generation: options.generation,
      limitsOn: options.limitsOn,
      proofBits: options.proofBits,
    })
  }

  /** Executes a command given as bytes of JSON. */
  execute(body: Buffer, door: Door, respond: Respond): void {
    this.#execute(body, door, respond, this.#options.verify)
  }

  /** The same for the board's own voice: what it signed a moment ago is not held against its own key again. */
  executeOwn(body: Buffer, door: Door, respond: Respond): void {
    this.#execute(body, door, respond, (_signature, key, _message, callback) => {
      if (identityId(key) !== this.#options.boardIdentity) throw new Error('only the board is taken at its own word')
      callback('good')
    })
  }

  #execute(body: Buffer, door: Door, respond: Respond, verify: FrontOptions['verify']): void {
    const read = readCommand(body)
    if (!read.ok) return this.#refuse(door, read.fault, respond)
    const command = read.value
    if (isGiven(command.public_key) || isGiven(command.signature)) this.#verify(command, door, respond, verify)
    else this.#unsigned(command, door, respond)
  }

  /** Refuses what is no command of ours. Its network pays for it; whoever has sent too many hears that and no reason. */
  #refuse(door: Door, fault: () => Refusal, respond: Respond): void {
    respond(refused(this.#options.throttle.count(kindOf(door), door) ?? fault()))
  }

  /** Asks the feed, then whoever may hold it in private. `client`: who waits for it; by default the board itself does. */
  read(request: ReadRequest, answer: (answer: ReadAnswer | NoAnswer) => void, client: Client = ownClient): void {
    const named = resolveRequest(this.#options.news.handles, request)
    if ('code' in named) return answer({ ok: false, refusal: named })
    const { resolved } = named
    if (resolved === undefined) return this.#read(request, answer, client)
    this.#read(named.request, (found) => answer(found && withResolved(found, resolved)), client)
  }

  #read(request: ReadRequest, answer: (answer: ReadAnswer | NoAnswer) => void, client: Client): void {
    if (request.op === 'log.checkpoint') return answer(this.#options.checkpoint())
    if (request.op === 'log.witnesses') return answer(this.#options.witnesses())
    if (request.op === 'webhook.list' || request.op === 'webhook.deliveries')
      return this.#options.hooks.read(request, answer)
    if (this.#searches.read(request, client, answer)) return
    const { actors } = this.#options
    if (readTools(actors, request, answer)) return
    if (workReads.has(request.op)) return readWorks(actors, request, answer)
    const home = homes[request.op]
    if (home !== undefined) return actors.readPrivate(shardOf(home(request), actors.shards), request, answer)
    if (request.op === 'inbox.get' && request.reader !== '') return this.#inbox(request, answer)
    const gather = gatherOf(request)
    if (gather !== undefined) return this.#gather(gather, request, answer)
    actors.read(request, (found) => {
      if (found === undefined || found.ok || 'refusal' in found) return answer(found)
      if (request.args.room !== undefined)
        return actors.readPrivate(shardOf(String(request.args.room), actors.shards), request, settle(found, answer))
      this.#readEverywhere(request, found, answer)
    })
  }

  /** Whom the reader has blocked is known where his conversations lie; what they wrote anywhere is left out of every share. */
  #inbox(request: ReadRequest, answer: (answer: ReadAnswer | NoAnswer) => void): void {
    const asked: ReadRequest = { ...request, op: 'inbox.blocked' }
    this.#gather(gatherOf(asked)!, asked, (found) => {
      if (found === undefined || !found.ok) return answer(found)
      const { blocked } = JSON.parse(found.json) as { blocked: string[] }
      this.#gather(gatherOf(request)!, { ...request, args: { ...request.args, blocked: blocked.join(',') } }, answer)
    })
  }

  #gather(gather: Gather, request: ReadRequest, answer: (answer: ReadAnswer | NoAnswer) => void): void {
    const { actors } = this.#options
    const found: (ReadAnswer | NoAnswer)[] = new Array(actors.shards + 1)
    let open = found.length
    const take = (place: number) => (part: ReadAnswer | NoAnswer) => {
      found[place] = part
      if (--open > 0) return
      const shares: Extract<ReadAnswer, { ok: true }>[] = []
      for (const each of found) {
        if (each === undefined || !each.ok) return answer(each)
        shares.push(each)
      }
      const parts = shares.map(({ json }) => JSON.parse(json) as unknown)
      answer(ok(gather(parts), { until: soonest(shares.map(({ until }) => until)) }))
    }
    actors.read(request, take(0))
    for (let shard = 0; shard < actors.shards; shard++) actors.readPrivate(shard, request, take(shard + 1))
  }

  /** An event id names no room: every shard is asked, and the one that has it answers. */
  #readEverywhere(request: ReadRequest, absent: ReadAnswer, answer: (answer: ReadAnswer | NoAnswer) => void): void {
    let open = this.#options.actors.shards
    let best: ReadAnswer | NoAnswer = absent
    for (let shard = 0; shard < this.#options.actors.shards; shard++) {
      this.#options.actors.readPrivate(shard, request, (found) => {
        if (found === undefined || found.ok || 'refusal' in found) best = found
        if (--open === 0) settle(absent, answer)(best)
      })
    }
  }

  #unsigned(command: Command, door: Door, respond: Respond): void {
    const tooMany = this.#options.throttle.count(kindOf(door), door)
    if (tooMany !== undefined) return respond(refused(tooMany))
    const checked = checkOperation(command)
    if (!checked.ok) return respond(refused(checked.refusal))
    const { operation, data } = checked.value
    if (operation.kind === 'write' || isSigned(operation)) {
      return respond(
        refused(refusal('unsigned', `${operation.name} must be signed: see the signing format at /capabilities`)),
      )
    }
    this.#answerRead(readRequest(operation, command, data, ''), door, respond)
  }

  #answerRead(request: ReadRequest, door: Door, respond: Respond): void {
    if (request.op === 'quota.get')
      return quotaOf(request, door, { ...this.#options, read: (...asked) => this.read(...asked) }, (answer) =>
        respond(readReply(answer)),
      )
    if (request.op === 'updates.get') return this.#options.poll(pollOf(request.args, request, door), respond)
    this.read(request, (answer) => respond(readReply(answer)), door)
  }

  #verify(command: Command, door: Door, respond: Respond, verify: FrontOptions['verify']): void {
    const { public_key, signature, timestamp, nonce } = command as Record<string, string | number | undefined>
    for (const [name, value] of Object.entries({ public_key, signature, timestamp, nonce })) {
      if (isGiven(value)) continue
      const { meaning, rule } = fields[name as FieldName]
      const message = `a signed command needs ${name}, ${meaning}: ${rule}`
      return this.#refuse(door, () => refusal('missing_field', message, name), respond)
    }
    const signer = this.#signers.of(public_key as string)
    if (signer === undefined) return this.#refuse(door, () => unlikeKey(public_key as string), respond)
    const signed = decodeBytes64(signature as string)
    if (signed === undefined) return this.#refuse(door, () => unlikeSignature(signature as string), respond)
    const tooMany = this.#options.throttle.signaturesObjection(door.address)
    if (tooMany !== undefined) return respond(refused(tooMany))
    const bytes = signingBytes(this.#options.serviceId, command)
    verify(signed, signer.key, bytes, (verdict) => {
      if (verdict === 'bad_signature' || verdict === 'bad_key') this.#options.throttle.badSignature(door.address)
      if (verdict !== 'good') return respond(refused(verdictRefusal(verdict, this.#options.serviceId, bytes)))
      this.#dispatch(command, signer, signed, bytes, door, respond)
    })
  }

  #dispatch(command: Command, signer: Signer, signature: Buffer, bytes: Buffer, door: Door, respond: Respond): void {
    const checked = checkOperation(command)
    if (!checked.ok) return this.#refuse(door, () => checked.refusal, respond)
    const { operation, data } = checked.value
    const { delegates } = this.#options.news
    if (delegates.isStale) return respond(refused(keysUnsure))
    const beyond = signer.delegate === undefined ? undefined : beyondScope(operation, signer.delegate)
    if (beyond !== undefined) return respond(refused(beyond))
    if (operation.kind === 'read') {
      const now = this.#options.wallSeconds()
      if (Math.abs(now - (command.timestamp as number)) > windowSeconds) {
        const message = staleWords(command.timestamp as number, now)
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
      const tooMany = this.#options.throttle.count('reads', door)
      if (tooMany !== undefined) return respond(refused(tooMany))
      const request = readRequest(operation, command, data, signer.id)
      const operator = isOperator(signer, this.#options.operators)
      const handle = this.#options.news.handles.get(signer.id)
      const reader = { operator, key: signer.text, ...(handle === undefined ? {} : { handle }) }
      return this.#answerRead({ ...request, ...reader }, door, respond)
    }
    const sha = hash('sha256', bytes, 'buffer')
    this.#writes.run({ command, operation, data, signer, signature, bytes, sha, door }, respond)
  }
}

const keysUnsure = refusal('overloaded', 'this board is still loading its delegations: try again', undefined, 1)

function verdictRefusal(verdict: Exclude<Verdict, 'good'>, serviceId: string, bytes: Buffer): Refusal {
  if (verdict === 'bad_key')
    return refusal('bad_key', 'public_key is not a canonical, torsion-free Ed25519 key', 'public_key')
  if (verdict === 'bad_signature') {
    // Length and hash of what should have been signed: whoever signs other bytes sees at once that they differ.
    return refusal(
      'bad_signature',
      `the signature does not match this command and key. The bytes to sign here have service "${serviceId}", ` +
        `length ${bytes.length} and SHA-256 ${hash('sha256', bytes, 'hex')}: compare yours, and the examples at /capabilities`,
      'signature',
    )
  }
  return refusal('overloaded', 'too many signatures are waiting to be checked: try again', undefined, 1)
}

/** A door that spares its clients the signing takes what is unsigned as a GET does. */
function kindOf({ via }: Door): 'reads' | 'unsigned_commands' {
  return via === 'mcp' ? 'reads' : 'unsigned_commands'
}

function unlikeKey(text: string): Refusal {
  const message = `public_key must be 43 characters of canonical base64url without padding, the 32 raw bytes of an Ed25519 key; ${text.length} characters were sent`
  return refusal('bad_key', message, 'public_key')
}

function unlikeSignature(text: string): Refusal {
  const message = `signature must be 86 characters of canonical base64url without padding, 64 bytes; ${text.length} characters were sent`
  return refusal('bad_signature', message, 'signature')
}

/** A read's arguments: the command's fields and what `data` holds, by one name each. */
function readRequest(
  operation: ReadOperation,
  command: Command,
  data: Readonly<Record<string, unknown>>,
  reader: string,
): ReadRequest {
  const args: Record<string, string | number> = {}
  for (const name of [...operation.required, ...operation.optional]) {
    const value = (command as Record<string, unknown>)[name]
    if (name !== 'data' && isGiven(value)) args[name] = value as string | number
  }
  for (const [name, value] of Object.entries(data)) if (name !== 'schema') args[name] = value as string | number
  return { op: operation.name, args, reader, isCommand: true }
}

/** `absent` everywhere is a refusal. */
function settle(
  absent: ReadAnswer,
  answer: (answer: ReadAnswer | NoAnswer) => void,
): (found: ReadAnswer | NoAnswer) => void {
  return (found) => answer(found !== undefined && !found.ok && 'absent' in found ? absent : found)
}
