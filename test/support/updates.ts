/** Requests of updates.get: a single one, or all pages after a cursor. */
import type { Signer } from '../../src/cli/sign.ts'
import type { Answer, Client, EventJson } from './client.ts'

export type UpdateJson = {
  readonly type: string
  readonly at: number
  readonly room?: string
  readonly event?: EventJson
  readonly document?: string
  readonly receiver?: string
}
export type UpdatesJson = {
  readonly schema: 1
  readonly updates: readonly UpdateJson[]
  readonly cursor: string
  readonly has_more: boolean
  readonly generation: string
}

export type UpdatesRequest = {
  readonly wait?: number
  readonly rooms?: readonly string[]
  readonly kinds?: readonly string[]
  readonly cursor?: string
  readonly limit?: number
}

/** One request: by GET, or as a command of the signer. */
export function requestUpdates(
  client: Client,
  { cursor, limit, ...data }: UpdatesRequest,
  signer?: Signer,
): Promise<Answer> {
  if (signer !== undefined) {
    const fields = { ...(cursor === undefined ? {} : { cursor }), ...(limit === undefined ? {} : { limit }) }
    return client.command(signer, {
      operation: 'updates.get',
      ...fields,
      data: JSON.stringify({ schema: 1, ...data }),
    })
  }
  const query = new URLSearchParams()
  if (cursor !== undefined) query.set('cursor', cursor)
  if (limit !== undefined) query.set('limit', String(limit))
  if (data.wait !== undefined) query.set('wait', String(data.wait))
  if (data.rooms !== undefined) query.set('room', data.rooms.join(','))
  if (data.kinds !== undefined) query.set('kinds', data.kinds.join(','))
  return client.get(`/api/updates?${query}`)
}

/** The same, which must be answered with updates. */
export async function fetchUpdates(client: Client, request: UpdatesRequest, signer?: Signer): Promise<UpdatesJson> {
  const answer = await requestUpdates(client, request, signer)
  if (answer.status !== 200) throw new Error(`updates.get: ${answer.text}`)
  return answer.data as unknown as UpdatesJson
}

/** The subject of an update, in one word. */
export const subject = ({ type, event, room }: UpdateJson): string => `${type} ${event?.event_id ?? room}`

/** Everything after a cursor, page by page of `limit`. */
export async function drainUpdates(client: Client, request: UpdatesRequest, signer?: Signer): Promise<UpdateJson[]> {
  const found: UpdateJson[] = []
  let cursor = request.cursor
  for (;;) {
    const page = await fetchUpdates(
      client,
      { ...request, wait: 0, ...(cursor === undefined ? {} : { cursor }) },
      signer,
    )
    found.push(...page.updates)
    cursor = page.cursor
    if (!page.has_more) return found
  }
}
