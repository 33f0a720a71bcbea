/** completion/complete: room names and handles, for the arguments of prompts and resource addresses. */
import { operationByName } from '../../actors/operations.ts'
import { isObject } from './brief.ts'
import type { Calling, Calls } from './calls.ts'
import { prompts } from './prompts.ts'
import { resourceTemplates } from './resources.ts'

export type Completing = {
  readonly ref: { readonly type: string; readonly name?: string | undefined; readonly uri?: string | undefined }
  readonly argument: { readonly name: string; readonly value: string }
}

type Completion = { readonly values: string[]; readonly hasMore: boolean }

/** The protocol allows 100. */
const valuesMax = 50
const nothing: Completion = { values: [], hasMore: false }

type Source = { readonly operation: string; readonly list: string; readonly name: string; readonly mark: string }

/** Where the values of an argument come from. A room is found by any part of its name, a handle by its beginning. */
const sources: Readonly<Record<string, Source>> = {
  room: { operation: 'rooms.list', list: 'rooms', name: 'name', mark: '' },
  handle: { operation: 'identities.list', list: 'identities', name: 'handle', mark: '@' },
}

export async function completionFor(asked: Completing, calls: Calls, calling: Calling): Promise<Completion> {
  const { name, value } = asked.argument
  const source = isTaken(asked) ? sources[name] : undefined
  if (source === undefined) return nothing
  const query = value.startsWith(source.mark) ? value.slice(source.mark.length) : value
  const args = { limit: valuesMax, ...(query === '' ? {} : { query: query.toLowerCase() }) }
  const outcome = await calls.run(operationByName.get(source.operation)!, args, calling)
  // A value that cannot be part of a name has no completions.
  if (outcome?.ok !== true || !isObject(outcome.data)) return nothing
  const { [source.list]: items, has_more } = outcome.data
  const names = (items as Readonly<Record<string, unknown>>[]).flatMap((item) => {
    const found = item[source.name]
    return typeof found === 'string' ? [`${source.mark}${found}`] : []
  })
  return { values: names, hasMore: has_more === true }
}

/** Whether the prompt or address has such an argument. */
function isTaken({ ref, argument }: Completing): boolean {
  if (ref.type === 'ref/prompt')
    return prompts.some((each) => each.name === ref.name && each.arguments.some(({ name }) => name === argument.name))
  const template = resourceTemplates.find(({ uriTemplate }) => uriTemplate === ref.uri)
  return template?.uriTemplate.includes(`{${argument.name}}`) === true
}
