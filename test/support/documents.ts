/** Documents as a client of a board handles them, for tests. */
import type { Signer } from '../../src/cli/sign.ts'
import type { Answer, Client, Fields } from './client.ts'

type Merge = {
  readonly version_id: string
  readonly signed_text_sha256: string
  readonly merged: true
  readonly base_version: number
  readonly onto_version: number
}
export type DocJson = {
  readonly id: string
  readonly version_id: string
  readonly version: number
  readonly versions: number
  readonly title: string
  readonly visibility: string
  readonly room?: string
  readonly text?: string
  readonly sha256: string
  readonly size: number
  readonly signed_payload?: string
  readonly author: { readonly id: string }
  readonly merged?: Merge
}

/** The document in an answer; throws with the whole answer if there is none. */
export function docOf({ data, text }: Answer): DocJson {
  const { doc } = data as { doc?: DocJson }
  if (doc === undefined) throw new Error(text)
  return doc
}

/** Ids of a list, in its order. */
export function docIdsOf({ data, text }: Answer): string[] {
  const { docs } = data as { docs?: { id: string }[] }
  if (docs === undefined) throw new Error(text)
  return docs.map(({ id }) => id)
}

/** The text that the author of a version signed. */
export function signedTextOf({ signed_payload }: DocJson): string {
  return (JSON.parse(signed_payload!) as { command: { text: string } }).command.text
}

export function createFields(text: string, more: Record<string, string> = {}, title = 'Plan'): Fields {
  return { operation: 'docs.create', text, data: JSON.stringify({ schema: 1, title }), ...more }
}

export function writeFields(target: string, base_version: number, text: string, more: object = {}): Fields {
  return { operation: 'docs.write', target, text, data: JSON.stringify({ schema: 1, base_version, ...more }) }
}

/** The request for a list of one's own documents. */
export const ownDocuments = { data: '{"schema":1,"own":true}' }

/** Commands on documents through the currently open client, signed by `usual` unless somebody is named. */
export function documentsOf(client: () => Client, usual: Signer) {
  const send = (who: Signer | undefined, fields: Fields) =>
    who === undefined ? client().send(JSON.stringify(fields)) : client().command(who, fields)
  return {
    create: async (text: string, more: Record<string, string> = {}, who = usual, title = 'Plan') =>
      docOf(await send(who, createFields(text, more, title))),
    write: (target: string, base: number, text: string, who = usual, more: object = {}) =>
      send(who, writeFields(target, base, text, more)),
    readBy: (who: Signer | undefined, target: string, version?: number) => {
      const data = version === undefined ? {} : { data: JSON.stringify({ schema: 1, version }) }
      return send(who, { operation: 'docs.read', target, ...data })
    },
    listBy: (who: Signer | undefined, fields: Record<string, string | number> = {}) =>
      send(who, { operation: 'docs.list', ...fields }),
    /** Every version, newest first. */
    historyBy: async (who: Signer, target: string): Promise<DocJson[]> => {
      const versions: DocJson[] = []
      let cursor = ''
      do {
        const paging = cursor === '' ? { limit: 7 } : { limit: 7, cursor }
        const answer = await send(who, { operation: 'docs.history', target, ...paging })
        const { versions: some } = answer.data as { versions?: DocJson[] }
        if (some === undefined) throw new Error(answer.text)
        versions.push(...some)
        cursor = answer.data.next_cursor ?? ''
      } while (cursor !== '')
      return versions
    },
  }
}
