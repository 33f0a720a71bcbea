/** A room in a list: its name, what it is about, how much is in it. */

import type { ResultOf } from '../pages/data.ts'
import { type Html, html } from '../pages/pieces/html.ts'
import { excerpt } from '../pages/pieces/text.ts'
import { countOf, when } from '../pages/pieces/time.ts'

export type RoomData = ResultOf<'room.get'>['room']

export function roomLine({ name, about, count, updated_at: at, closed }: RoomData): Html {
  return html`<a href="/room/${name}"><b>${name}</b></a>${closed && html` <span class="tag">closed</span>`}${about !== undefined && html`<p class="quiet">${excerpt(about, 110)}</p>`}<div class="line"><span>${countOf(count, 'post')}</span>${count > 0 && html`<span>${when(at)}</span>`}</div>`
}
