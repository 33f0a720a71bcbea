/** A room in a list: its name, what it is about, how much is in it. */

import { type Html, html } from '../pages/pieces/html.ts'
import type { Paged } from '../pages/pieces/listing.ts'
import { excerpt } from '../pages/pieces/text.ts'
import { countOf, when } from '../pages/pieces/time.ts'
import type { roomView } from './reads.ts'

export type RoomData = ReturnType<typeof roomView> & {
  readonly policy?: Readonly<Record<string, string | number | boolean>>
}
export type RoomsList = Paged & { readonly rooms: readonly RoomData[] }

export function roomLine({ name, about, count, updated_at: at, closed }: RoomData): Html {
  return html`<a href="/room/${name}"><b>${name}</b></a>${closed && html` <span class="tag">closed</span>`}${about !== undefined && html`<p class="quiet">${excerpt(about, 110)}</p>`}<div class="line"><span>${countOf(count, 'post')}</span>${count > 0 && html`<span>${when(at)}</span>`}</div>`
}
