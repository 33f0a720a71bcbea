/**
 * Routes: which path answers with what, and with which status. The rules for all routes (methods, queries, caching headers) are here; the
 * content is decided elsewhere.
 */

import { fields } from '../../actors/kernel/fields.ts'
import { internalLimits, sizes } from '../../actors/kernel/limits.ts'
import { namesOf, type Operation, pathField } from '../../actors/kernel/operation.ts'
import { type Refusal, refusal } from '../../actors/kernel/refusals.ts'
import { operations, type ReadOperation } from '../../actors/operations.ts'
import { TurnoverMap } from '../../storage/turnover-map.ts'
import { faultOf } from '../command/check.ts'
import type { LiveFacts } from '../command/live-facts.ts'
import type { NoAnswer } from '../command/ports.ts'
import { readReply } from '../command/reply.ts'
import { meantBy, ruleOf, type Shape, shapeOf } from '../format/data-fault.ts'
import { refused } from '../format/reply.ts'
import { type Check, compile } from '../format/schema-check.ts'
import { etagOf, isHeld, type Ready, ReadyAnswers } from '../http/answers.ts'
import type { Exchange, Header, RouteHandler } from '../http/port.ts'
import { decoded, namedTwice, noQuery, parameterNamed, parseQuery, unknownParameter } from '../http/query.ts'
import { dataHeaders, type Replies } from '../http/replies.ts'
import { type ReadAnswer, type ReadRequest, replyOf } from '../reads/read.ts'
import { inTurn, noteCause } from '../runtime/slow-turns.ts'
import type { CommandRouter } from './command-router.ts'

type RoutesOptions = {
  readonly front: CommandRouter
  readonly news: LiveFacts
  readonly replies: Replies
  /** Unix seconds. */
  readonly wallSeconds: () => number
  /** The client address of a request, by the operator's proxy settings. */
  readonly addressOf: (exchange: Exchange) => string
  /** Paths that stream or serve prepared bytes, by first segment; see `board-routes.ts`. */
  readonly more: Readonly<Record<string, RouteHandler>>
  /** Paths that accept other methods and check the method themselves, by whole path or first segment. */
  readonly acting: Readonly<Record<string, RouteHandler>>
  readonly onReply: (status: number) => void
  /** Answers a browser that requests a missing path with a page; false if it is not a browser, and then the refusal is sent. */
  readonly nowhere: (exchange: Exchange) => boolean
}

const json = 'application/json; charset=utf-8'
/** Some programs treat an encoded slash or a backslash as a slash and some do not, so they would see different paths. */
const ambiguous = /%2f|%5c|\\/i
/** Addresses of tools may contain unescaped ids with slashes; both readings redirect to the one address. */
const redirectable = /^\/tools\/(?!.*%5c)[^\\]*$/i

/** Streams and files, whose handlers take the rest of the path as their parameter, in which no slash may be. */
const oneParameter = /^\/(?:tail|a)\/[^/]+$/

/** Reads of the API with a route of their own that takes no parameter. */
const plainReads: ReadonlySet<string> = new Set(['/api/stats', '/capabilities', '/openapi.json', '/time'])

/** An answer in preparation and the exchanges that wait for it: it shows everything confirmed when they arrived. */
type PendingRead = { readonly change: number; readonly exchanges: Exchange[] }

type Found = { readonly operation: ReadOperation; readonly parameter: string }

export class Routes {
  readonly #options: RoutesOptions
  readonly #replies: Replies
  readonly #ready = new ReadyAnswers(internalLimits.answerCacheBytes)
  /** By address. */
  readonly #pending = new TurnoverMap<string, PendingRead>()
  readonly #gets = new Map<string, ReadOperation>()
  /** The parts of a path before and after its parameter. */
  readonly #patterns: { readonly before: string; readonly behind: string; readonly operation: ReadOperation }[] = []

  constructor(options: RoutesOptions) {
    this.#options = options
    this.#replies = options.replies
    for (const operation of operations) {
      // A path that waits or streams has its own route.
      if (operation.kind === 'write' || operation.get === undefined || options.more[operation.get.path] !== undefined)
        continue
      const [before = '', behind] = operation.get.path.split(/\{\w+\}/)
      if (behind === undefined) this.#gets.set(before, operation)
      else this.#patterns.push({ before, behind, operation })
    }
  }

  handle(exchange: Exchange): void {
    inTurn('a request', () => this.#handle(exchange))
  }

  #handle(exchange: Exchange): void {
    const { method, path } = exchange
    if (!this.#isPlain(exchange)) return
    const shorter = this.#withoutSlash(path)
    if (shorter !== undefined) return this.#nothing(exchange, `leave out the final slash, as in ${shorter}`)
    const slash = path.indexOf('/', 1)
    const prefix = slash < 0 ? path : path.slice(0, slash + 1)
    const { acting: routes } = this.#options
    const acting = routes[path] ?? routes[prefix]
    if (acting !== undefined) {
      noteCause(prefix)
      return acting(exchange, path.slice(slash + 1))
    }
    const found = this.#find(path)
    const more = found === undefined ? this.#more(path) : undefined
    if (found === undefined && more === undefined) return this.#nothing(exchange, 'see /capabilities for what there is')
    if (method === 'OPTIONS') return this.#replies.preflight(exchange, 'GET, HEAD, OPTIONS')
    if (method !== 'GET' && method !== 'HEAD') return this.#replies.wrongMethod(exchange, 'GET, HEAD, OPTIONS')
    const wrong = plainReads.has(path) ? noQuery(path, exchange.query) : undefined
    if (wrong !== undefined) return this.#replies.send(exchange, refused(wrong))
    noteCause(found?.operation.get?.path ?? prefix)
    if (more !== undefined) return more.run(exchange, more.parameter)
    this.#read(exchange, found!)
  }

  /** A browser gets a page. */
  #nothing(exchange: Exchange, hint: string): void {
    const { method, path } = exchange
    if ((method === 'GET' || method === 'HEAD') && this.#options.nowhere(exchange)) return
    this.#replies.refuse(exchange, refusal('no_such_path', `there is nothing at ${path.slice(0, 200)}: ${hint}`))
  }

  /** The path without its final slash, if that one takes requests. No path here ends with a slash, except where a parameter may. */
  #withoutSlash(path: string): string | undefined {
    if (!path.endsWith('/')) return undefined
    const shorter = path.slice(0, -1)
    const { acting, more } = this.#options
    const found = acting[shorter] ?? more[shorter] ?? this.#find(shorter)
    return found !== undefined || oneParameter.test(shorter) ? shorter.slice(0, 200) : undefined
  }

  /** Whether all programs read the URL alike and it is not too long; otherwise it is answered here. */
  #isPlain(exchange: Exchange): boolean {
    const { path, query } = exchange
    const length = path.length + (query === '' ? 0 : query.length + 1)
    const { url_bytes: allowed } = sizes
    if (length > allowed) {
      const body = refused(
        refusal('too_large', `the URL has ${length} bytes, ${allowed} are allowed: POST the command`),
      )
      this.#replies.send(exchange, length > 2 * allowed ? { ...body, status: 431 } : body)
      return false
    }
    if (!ambiguous.test(path) || redirectable.test(path)) return true
    const message =
      'a path must not contain a backslash, nor an encoded slash (%2F) or backslash (%5C); write the character unencoded or leave it out'
    this.#replies.send(exchange, refused(refusal('ambiguous_path', message)))
    return false
  }

  #find(path: string): Found | undefined {
    const operation = this.#gets.get(path)
    if (operation !== undefined) return { operation, parameter: '' }
    for (const { before, behind, operation: each } of this.#patterns) {
      if (!path.startsWith(before) || !path.endsWith(behind)) continue
      const parameter = path.slice(before.length, path.length - behind.length)
      if (!parameter.includes('/')) return { operation: each, parameter }
    }
    return undefined
  }

  #more(path: string): { run: RouteHandler; parameter: string } | undefined {
    const whole = this.#options.more[path]
    if (whole !== undefined) return { run: whole, parameter: '' }
    const slash = path.indexOf('/', 1)
    const run = slash < 0 ? undefined : this.#options.more[`${path.slice(0, slash)}/`]
    return run === undefined ? undefined : { run, parameter: path.slice(slash + 1) }
  }

  #read(exchange: Exchange, { operation, parameter }: Found): void {
    if (!this.#replies.isWithinReads(exchange)) return
    const url = `${exchange.path}?${exchange.query}`
    const { news } = this.#options
    const ready = this.#ready.find(url, (room) => news.newestChange(room), this.#options.wallSeconds())
    if (ready !== undefined) return this.#sendReady(exchange, ready)
    const request = queryRequest(operation, exchange.query, parameter)
    if ('code' in request) return this.#replies.send(exchange, refused(request))
    // A search waits for others of its network, so other requests must not wait with it.
    const isSearch = request.args.query !== undefined || request.op === 'tools.search'
    const name = isSearch ? undefined : url
    const change = news.settled
    const running = name === undefined ? undefined : this.#pending.get(name)
    if (running !== undefined && running.change >= change) return void running.exchanges.push(exchange)
    const begun: PendingRead = { change, exchanges: [exchange] }
    if (name !== undefined) this.#pending.set(name, begun)
    this.#options.front.read(
      request,
      (answer) => {
        if (name !== undefined && this.#pending.get(name) === begun) this.#pending.delete(name)
        this.#answer(begun.exchanges, operation, answer, (found) => this.#keep(url, found, change))
      },
      { address: this.#options.addressOf(exchange), onGone: (callback) => exchange.onAbort(callback) },
    )
  }

  #answer(
    exchanges: readonly Exchange[],
    operation: ReadOperation,
    answer: ReadAnswer | NoAnswer,
    keep: (answer: Extract<ReadAnswer, { ok: true }>) => Ready,
  ): void {
    if (answer?.ok === true) {
      const ready = keep(answer)
      for (const exchange of exchanges) this.#sendReady(exchange, ready)
      return
    }
    const reply = readReply(answer && inWordsOf(operation, exchanges[0]!.query, answer))
    for (const exchange of exchanges) this.#replies.send(exchange, reply)
  }

  #keep(url: string, answer: Extract<ReadAnswer, { ok: true }>, change: number): Ready {
    const body = replyOf(answer)
    const ready = { body, file: answer.file, etag: etagOf(body), room: answer.room, change, until: answer.until }
    this.#ready.keep(url, ready)
    return ready
  }

  #sendReady(exchange: Exchange, { body, etag, file }: Ready): void {
    if (exchange.ended) return
    const kind: readonly Header[] =
      file === undefined
        ? [['content-type', json]]
        : [
            ['content-type', 'text/plain; charset=utf-8'],
            ['content-disposition', `attachment; filename="${file}"`],
          ]
    const headers: Header[] = [...kind, ...dataHeaders, ['cache-control', 'no-cache'], ['etag', etag]]
    const same = isHeld(exchange, etag)
    this.#options.onReply(same ? 304 : 200)
    if (same) exchange.reply(304, headers, '')
    else exchange.reply(200, headers, body)
  }
}

/** The parameters of a GET as a read request, checked by the rules of the fields that they set. */
function queryRequest(operation: ReadOperation, query: string, parameter: string): ReadRequest | Refusal {
  const get = operation.get!
  const parsed = parseQuery(query, sizes.url_query_bytes)
  if ('code' in parsed) return parsed
  const args: Record<string, string | number> = {}
  const inPath = pathField(operation)
  if (inPath !== undefined) {
    const value = decoded(parameter)
    const fault = faultOf(inPath.name, inPath.rule, value)
    if (fault !== undefined) return fault
    args[inPath.name] = value
  }
  for (const [name, value] of parsed) {
    const declared = parameterNamed(get.query, name)
    if (declared === undefined) {
      return unknownParameter(get.path, get.query.flatMap(namesOf), name)
    }
    const read = declared.field.startsWith('data.')
      ? readData(operation, name, declared.field.slice(5), value)
      : readField(operation, name, declared.field as keyof typeof fields, value)
    if (typeof read === 'object') return read
    const key = declared.field.replace('data.', '')
    if (args[key] !== undefined) return namedTwice(declared)
    args[key] = read
  }
  for (const key of requiredKeys(operation)) {
    if (args[key] !== undefined) continue
    const shown = get.query.find((each) => each.field === `data.${key}`)?.name ?? key
    return refusal('missing_field', `${get.path} needs ${shown}: ${ruleOf(dataShapes(operation)[key]!)}`, shown)
  }
  for (const name of operation.required) {
    if (name === 'data' || args[name] !== undefined) continue
    const declared = get.query.find((each) => each.field === name)
    const names = declared === undefined ? [name] : namesOf(declared)
    return refusal('missing_field', `${get.path} needs ${names.join(' or ')}: ${fields[name].rule}`, names[0])
  }
  return { op: operation.name, args, reader: '' }
}

/** Rewrites a refusal of the command for the sender of a GET: `field` becomes the name that they gave the query parameter. */
function inWordsOf(
  { get }: Operation,
  query: string,
  answer: Exclude<ReadAnswer, { ok: true }>,
): Exclude<ReadAnswer, { ok: true }> {
  const found = 'refusal' in answer ? answer.refusal : answer.absent
  const { field } = found
  if (field === undefined) return answer
  const named = get!.query.find((each) => each.field === field)
  if (named === undefined) return answer
  const given = parseQuery(query, sizes.url_query_bytes)
  const isOther = named.also !== undefined && !('code' in given) && given.has(named.also)
  return { ok: false, refusal: { ...found, field: isOther ? named.also : named.name } }
}

function dataShapes({ data }: Operation): Readonly<Record<string, Shape>> {
  return shapeOf(data).properties ?? {}
}

/** Required keys of `data`, except its version. */
function requiredKeys({ data }: Operation): readonly string[] {
  const { required = [] } = shapeOf(data)
  return required.filter((key) => key !== 'schema')
}

const integerText = /^(0|-?[1-9][0-9]{0,15})$/
/** Compiled on first use; bounded by the number of declared parameters. */
const dataChecks = new Map<Shape, Check>()

function readField(
  operation: Operation,
  name: string,
  field: keyof typeof fields,
  value: string,
): string | number | Refusal {
  const rule = operation.narrowed?.[field] ?? fields[field]
  const given = rule.type === 'integer' && integerText.test(value) ? Number(value) : value
  return faultOf(name, rule, given) ?? given
}

/** Reads a parameter that belongs inside `data`, by the rules of that operation's `data` schema. */
function readData(operation: Operation, name: string, key: string, value: string): string | number | Refusal {
  const shape = dataShapes(operation)[key]!
  let check = dataChecks.get(shape)
  if (check === undefined) {
    check = compile(shape)
    dataChecks.set(shape, check)
  }
  const given = shape.type === 'integer' && integerText.test(value) ? Number(value) : value
  if (check(given)) return given
  return refusal('invalid_field', `${name} must be ${ruleOf(shape)}${meantBy(shape, value)}`, name)
}
