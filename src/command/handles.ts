/**
 * Handles of identities, as far as the main thread knows them, and what they stand for in reads and in `post.to`.
 */

import { type Refusal, refusal } from '../../actors/kernel/refusals.ts'
import { namingOf } from '../../actors/kernel/schema.ts'
import { operations } from '../../actors/operations.ts'
import { jsonOf, type ReadAnswer, type ReadRequest } from '../reads/read.ts'

/**
 * Handles from the answers to its own claims and from the feed. The shards of private rooms show handles too and know none by
 * themselves: each new one is sent to them before its claim is answered.
 */
export class HandleCache {
  /** identity id -> handle. */
  readonly #handles = new Map<string, string>()
  /** handle -> identity id. */
  readonly #identities = new Map<string, string>()
  #onNew: (identity: string, handle: string) => void = () => {}

  /** Called with each handle that was not known before. */
  onNew(listener: (identity: string, handle: string) => void): void {
    this.#onNew = listener
  }

  get(identity: string): string | undefined {
    return this.#handles.get(identity)
  }

  /** The identity (64 hex) that bears a handle. */
  identityOf(handle: string): string | undefined {
    return this.#identities.get(handle)
  }

  /** A handle stays with its identity: what is said again changes nothing. */
  set(identity: string, handle: string): void {
    if (this.#handles.get(identity) === handle) return
    this.#handles.set(identity, handle)
    this.#identities.set(handle, identity)
    this.#onNew(identity, handle)
  }

  all(): (readonly [identity: string, handle: string])[] {
    return [...this.#handles]
  }
}

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

/**
 * The id that `@handle` stands for, or why there is none. A handle stays with its identity for ever, so what it stands for here and
 * now is what it stands for.
 */
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
