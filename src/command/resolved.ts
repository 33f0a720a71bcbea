/**
 * Handles in reads and in `post.to`, resolved to the ids they stand for before the read starts. A handle stays with its
 * identity for ever, so what it stands for here and now is what it stands for.
 */

import { type Refusal, refusal } from '../../actors/kernel/refusals.ts'
import { namingOf } from '../../actors/kernel/schema.ts'
import { operations } from '../../actors/operations.ts'
import { jsonOf, type ReadAnswer, type ReadRequest } from '../reads/read.ts'
import type { HandleCache } from './handle-cache.ts'

/** Arguments of each read that may name an identity by its handle: the argument, and the field it came in. */
const named: ReadonlyMap<string, readonly (readonly [arg: string, field: string])[]> = new Map(
  operations.flatMap(({ name, kind, narrowed = {}, data }) => {
    const properties = data?.properties ?? {}
    const shapes = [
      ...Object.entries(narrowed).map(([field, { schema }]) => [field, field, schema] as const),
      ...Object.entries(properties).map(([key, schema]) => [key, `data.${key}`, schema] as const),
    ]
    const found = shapes.filter(([, , schema]) => namingOf(schema) === 'handle')
    return kind === 'read' && found.length > 0 ? [[name, found.map(([arg, field]) => [arg, field] as const)]] : []
  }),
)

/** The id that `@handle` stands for, or why there is none. */
export function resolveHandle(handles: HandleCache, text: string, field: string): string | Refusal {
  return (
    handles.identityOf(text.slice(1)) ?? refusal('not_found', `no identity on this board has the handle ${text}`, field)
  )
}

/** The request with ids for handles, and which id each stands for; or a refusal. */
export function resolveRequest(
  handles: HandleCache,
  request: ReadRequest,
): { readonly request: ReadRequest; readonly resolved: Readonly<Record<string, string>> | undefined } | Refusal {
  const resolved: Record<string, string> = {}
  const args = { ...request.args }
  for (const [arg, field] of named.get(request.op) ?? []) {
    const text = args[arg]
    if (typeof text !== 'string' || !text.startsWith('@')) continue
    const id = resolveHandle(handles, text, field)
    if (typeof id !== 'string') return id
    args[arg] = id
    resolved[text] = id
  }
  const isAny = Object.keys(resolved).length > 0
  return isAny ? { request: { ...request, args }, resolved } : { request, resolved: undefined }
}

/** The answer with the ids beside it. */
export function withResolved(answer: ReadAnswer, resolved: Readonly<Record<string, string>>): ReadAnswer {
  if (!answer.ok) return answer
  const { value: _, ...scope } = answer
  return { ...scope, json: `${jsonOf(answer).slice(0, -1)},"resolved":${JSON.stringify(resolved)}}` }
}
