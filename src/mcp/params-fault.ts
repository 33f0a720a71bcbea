/**
 * Says what is wrong with the parameters of a request, in one sentence. Only for the requests that the protocol library validates itself:
 * it answers those with the findings of its validator.
 */

import { isLegacyRequest, type StandardSchemaV1Sync, specTypeSchemas } from '@modelcontextprotocol/server'

const schemas = new Map<string, StandardSchemaV1Sync>([
  ['initialize', specTypeSchemas.InitializeRequest],
  ['tools/call', specTypeSchemas.CallToolRequest],
])

type Method = { readonly method: string; readonly id: string | number }

/** `fault`: names the parameter and what it must be. Undefined for a valid request, and for a message that needs no answer. */
export async function paramsFault(
  request: Request,
  message: unknown,
): Promise<{ readonly id: Method['id']; readonly fault: string } | undefined> {
  if (!isRequest(message)) return undefined
  const [issue] = schemas.get(message.method)?.['~standard'].validate(message).issues ?? []
  if (issue === undefined) return undefined
  // Protocol 2026-07-28 has no initialize: there it is an unknown method, whatever its parameters are.
  if (message.method === 'initialize' && !(await isLegacyRequest(request, message))) return undefined
  const place = (issue.path ?? []).map((part) => String(typeof part === 'object' ? part.key : part)).join('.')
  const [, expected, received] = /expected (\w+), received (\w+)/.exec(issue.message) ?? []
  const { id, method } = message
  if (expected === undefined) return { id, fault: `${place} of ${method} does not fit the protocol` }
  const fault =
    received === 'undefined'
      ? `${method} needs ${place}: ${kindOf(expected)}`
      : `${place} of ${method} must be ${kindOf(expected)}; ${kindOf(received)} was sent`
  return { id, fault }
}

/** A validator's word for a type, with its article. */
function kindOf(word = ''): string {
  if (word === 'null') return word
  const type = word === 'record' ? 'object' : word
  return `${/^[aeiou]/.test(type) ? 'an' : 'a'} ${type}`
}

function isRequest(message: unknown): message is Method {
  const { jsonrpc, method, id } = (message ?? {}) as Readonly<Record<string, unknown>>
  return jsonrpc === '2.0' && typeof method === 'string' && (typeof id === 'string' || typeof id === 'number')
}
