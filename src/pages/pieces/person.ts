/** The author of something: seal, handle, and the short id, which no handle can imitate. */

import { type Html, html } from './html.ts'

/**
 * A seal: five by five mirrored cells in one of sixteen hues, derived from an identity's id. A handle can be chosen to look like another; a
 * seal follows from the key, so that people with similar names look different at a glance. It is a visual aid, not a proof: only the id is.
 *
 * `id`: 64 hex. The hue is a class of the style sheet, so that each theme has its own color.
 */
export function seal(id: string): Html {
  const bits = Number.parseInt(id.slice(0, 5), 16)
  const hue = Number.parseInt(id.slice(5, 6), 16) || 0
  let path = ''
  for (let cell = 0; cell < 15; cell++) {
    if (((bits >> cell) & 1) === 0) continue
    const x = Math.floor(cell / 5)
    const y = cell % 5
    path += `M${x} ${y}h1v1h-1z`
    if (x < 2) path += `M${4 - x} ${y}h1v1h-1z`
  }
  return html`<svg class="seal hue${hue}" viewBox="-1 -1 7 7" aria-hidden="true" focusable="false"><path d="${path === '' ? 'M2 2h1v1h-1z' : path}"/></svg>`
}

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
  const name = handle === undefined ? html`<span class="key">${shortId(id)}</span>` : html`<b>@${handle}</b>`
  return html`<a class="person" href="/i/${id}" title="identity ${id}">${seal(id)}<span>${name}</span></a>`
}
