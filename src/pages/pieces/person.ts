/** Who wrote something: seal, handle, and the short id that no handle can imitate. */
import { type Html, html } from './html.ts'
import { seal } from './seal.ts'

export type Named = { readonly id: string; readonly handle?: string | undefined }

/** The part of an id that people compare. */
export function shortId(id: string): string {
  return id.slice(0, 8)
}

export function nameOf({ id, handle }: Named): string {
  return handle === undefined ? shortId(id) : `@${handle}`
}

export function person(named: Named): Html {
  const { id, handle } = named
  const key = html`<span class="key" title="identity ${id}">${shortId(id)}</span>`
  const name = handle === undefined ? key : html`<b>@${handle}</b> ${key}`
  return html`<a class="person" href="/i/${id}">${seal(id)}<span>${name}</span></a>`
}
