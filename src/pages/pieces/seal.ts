/**
 * A seal: five by five cells, mirrored, in one of sixteen hues, made from an identity's id. A handle can be chosen to look like
 * another; a seal follows from the key, so that two people with similar names are distinct at a glance. It is a help for the
 * eye and no proof: only the id is.
 */
import { type Html, html } from './html.ts'

/** `id`: 64 hex. The hue is a class of the style sheet, so that both themes choose their own tone. */
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
