/** Answers in the short forms that a test compares: the result, or the refusal. */
import type { Signer } from '../../src/cli/sign.ts'
import type { Answer, Client, Fields } from './client.ts'

export type Json = Readonly<Record<string, unknown>>

/** `data` of a success; throws with the whole answer if it is none. */
export function dataOf({ status, text }: Answer): Json {
  if (status !== 200) throw new Error(text)
  return (JSON.parse(text) as { data: Json }).data
}

/** `200 ok`, or status, code and field of a refusal, the parts by which a caller distinguishes them. */
export function summaryOf({ status, code, field }: Answer): string {
  return `${status} ${code ?? 'ok'}${field === undefined ? '' : ` ${field}`}`
}

/** Signs a command that must succeed; returns its `data`. */
export async function run(client: Client, who: Signer, fields: Fields): Promise<Json> {
  return dataOf(await client.command(who, fields))
}

/** Walks a list to its end; `next` requests a page, with the cursor of the previous one. */
export async function walk(name: string, next: (cursor: string | undefined) => Promise<Json>): Promise<Json[]> {
  const items: Json[] = []
  let cursor: string | undefined
  for (;;) {
    const page = await next(cursor)
    items.push(...(page[name] as Json[]))
    if (page.has_more !== true) return items
    cursor = page.next_cursor as string
  }
}
