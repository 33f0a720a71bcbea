/** A call of a third-party HTTP tool: the request that is sent, and the answer as it is passed on. */
import { isUtf8 } from 'node:buffer'
import { exactJson, foreignJson } from '../format/foreign-json.ts'
import type { Answered, OutgoingRequest } from '../outgoing/request.ts'
import { urlBytesMax } from '../outgoing/target.ts'
import { isObject } from '../payments/x402.ts'

const httpMethods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const

/** What a caller may specify. */
export type CallData = {
  readonly method?: string
  readonly query?: Readonly<Record<string, unknown>>
  readonly body?: unknown
  readonly max_price?: string
}

/** An answer as a caller gets it. */
export type Output = {
  readonly output_type: string
  readonly output_encoding: 'json' | 'text' | 'base64'
  readonly output: unknown
}

type Address = { readonly url: string; readonly method: string }
type Request = Required<Pick<OutgoingRequest, 'url' | 'method' | 'headers'>> & Pick<OutgoingRequest, 'body'>

/** What is wrong with the caller's data for the tool at this address, as a sentence, and the key it concerns. */
export function dataFault(
  address: Address & { readonly mcp: boolean },
  data: CallData,
): { readonly message: string; readonly key: keyof CallData } | undefined {
  const { method, query = {}, body } = data
  const isHttp = !address.mcp
  const isMethod = method === undefined || (httpMethods as readonly string[]).includes(method)
  const no = (key: keyof CallData, message: string) => ({ key, message })
  if (isHttp && !isMethod) return no('method', `"method" in data must be one of ${httpMethods.join(', ')}`)
  if (!Object.values(query).every((each) => ['string', 'number', 'boolean'].includes(typeof each)))
    return no('query', 'values of "query" in data must be strings, integers, true or false')
  if (isHttp && method === 'GET' && body !== undefined) return no('body', 'a GET takes no "body": put it into "query"')
  if (!isHttp && argumentsOf(data) === undefined)
    return no(
      'body',
      `"body" in data must be the arguments of the MCP tool: an object, or the JSON text of one with integers up to ${Number.MAX_SAFE_INTEGER}`,
    )
  // If a tool's own address is too long, the tool is at fault.
  const hasQuery = isHttp && Object.keys(query).length > 0 && URL.canParse(address.url)
  const urlBytes = hasQuery ? Buffer.byteLength(requestOf(address, data).url) : 0
  if (urlBytes > urlBytesMax)
    return no(
      'query',
      `"query" in data makes the address of the tool ${urlBytes} bytes long, ${urlBytesMax} are allowed: send less, or a "body"`,
    )
  return undefined
}

/** The arguments of an MCP tool; undefined if `body` is neither an object nor the JSON text of one. */
export function argumentsOf({ body, query = {} }: CallData): Readonly<Record<string, unknown>> | undefined {
  const given = typeof body === 'string' ? exactJson(body) : body === undefined ? query : body
  return isObject(given) ? given : undefined
}

/** The data has passed `dataFault`. */
export function requestOf(address: Address, { method, query = {}, body }: CallData): Request {
  const listed = (httpMethods as readonly string[]).includes(address.method) ? address.method : ''
  const chosen = method ?? (listed !== '' && !(listed === 'GET' && body !== undefined) ? listed : '')
  const verb = chosen !== '' ? chosen : body === undefined ? 'GET' : 'POST'
  const url = new URL(address.url)
  for (const [name, value] of Object.entries(query)) url.searchParams.append(name, String(value))
  const sent = body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body)
  const type = typeof body === 'string' && !isJson(body) ? 'text/plain; charset=utf-8' : 'application/json'
  return {
    url: url.href,
    method: verb,
    headers: {
      accept: 'application/json, text/*;q=0.9, */*;q=0.5',
      ...(sent === undefined ? {} : { 'content-type': type }),
    },
    ...(sent === undefined ? {} : { body: sent }),
  }
}

export function outputOf({ headers, body }: Pick<Answered, 'headers' | 'body'>): Output {
  const type = (headers['content-type']?.[0] ?? '').replace(/[^\x20-\x7e]/g, '').slice(0, 256)
  const output_type = type === '' ? 'application/octet-stream' : type
  if (!isUtf8(body)) return { output_type, output_encoding: 'base64', output: body.toString('base64') }
  const text = body.toString('utf8')
  const isJsonType = /^application\/([\w.+-]+\+)?json\b/i.test(type)
  const value = isJsonType || type === '' ? exactJson(text) : undefined
  if (value !== undefined)
    return { output_type: type === '' ? 'application/json' : type, output_encoding: 'json', output: value }
  return { output_type, output_encoding: 'text', output: text }
}

function isJson(text: string): boolean {
  return /^\s*[[{"]/.test(text) && foreignJson(text) !== undefined
}
