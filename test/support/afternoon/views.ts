/** A board as one reader sees it: every list read to its end. */

import { dataOf, type Json, walk } from '../answers.ts'
import type { Answer, Client, Fields } from '../client.ts'
import { people } from './people-and-rooms.ts'

export type QueryFields = { readonly [field: string]: string | number }

export class Views {
  readonly client: Client
  /** Number of the person who reads; undefined: unsigned. */
  readonly who: number | undefined
  /** Collects everything that was answered, if given. */
  readonly texts: string[] | undefined

  constructor(client: Client, who?: number, texts?: string[]) {
    this.client = client
    this.who = who
    this.texts = texts
  }

  async answer(operation: string, fields: QueryFields = {}): Promise<Answer> {
    const command = { operation, ...fields } as Fields
    const { client, who } = this
    const sent = who === undefined ? client.send(JSON.stringify(command)) : client.command(people[who]!, command)
    const answer = await sent
    this.texts?.push(answer.text)
    return answer
  }

  async ask(operation: string, fields: QueryFields = {}): Promise<Json> {
    return dataOf(await this.answer(operation, fields))
  }

  list<Item = Json>(operation: string, name: string, fields: QueryFields = {}): Promise<Item[]> {
    return walk(name, (cursor) =>
      this.ask(operation, { limit: 200, ...fields, ...(cursor === undefined ? {} : { cursor }) }),
    ) as Promise<unknown> as Promise<Item[]>
  }

  /** The same by GET. `path` has a query. */
  listByGet<Item = Json>(path: string, name: string): Promise<Item[]> {
    return walk(name, async (cursor) => {
      const answer = await this.client.get(`${path}&limit=200${cursor === undefined ? '' : `&cursor=${cursor}`}`)
      this.texts?.push(answer.text)
      return dataOf(answer)
    }) as Promise<unknown> as Promise<Item[]>
  }
}

/** Throws the first difference of two lists, in readable form. */
export function same(what: string, found: readonly unknown[], expected: readonly unknown[]): void {
  for (let n = 0; n < Math.max(found.length, expected.length); n++) {
    const [a, b] = [JSON.stringify(found[n]), JSON.stringify(expected[n])]
    if (a !== b)
      throw new Error(`${what}, ${n} of ${expected.length} (found ${found.length}):\nfound    ${a}\nexpected ${b}`)
  }
}

/** Does something for each, sixteen at a time. */
export async function each<Item>(items: readonly Item[], act: (item: Item) => Promise<unknown>): Promise<void> {
  const left = [...items]
  const worker = async (): Promise<void> => {
    for (let item = left.pop(); item !== undefined; item = left.pop()) await act(item)
  }
  await Promise.all(Array.from({ length: 16 }, worker))
}
