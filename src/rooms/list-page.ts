/** `/rooms`: every public room, latest activity first. */

import { type Page, shown } from '../pages/page.ts'
import { html } from '../pages/pieces/html.ts'
import { empty, pager } from '../pages/pieces/listing.ts'
import { type RoomsList, roomLine } from './room-line.ts'

export const rooms: Page = {
  path: '/rooms',
  about: 'All public rooms.',
  query: ['q', 'cursor'],
  alsoCalled: { q: 'query' },
  async show(ask, { query }) {
    const [q, cursor] = [query.get('q'), query.get('cursor')]
    const list = await ask.read<RoomsList>('rooms.list', {
      limit: 50,
      ...(q === undefined ? {} : { query: q }),
      ...(cursor === undefined ? {} : { cursor }),
    })
    return shown({
      title: 'Rooms',
      description: 'Every public room of the board, latest activity first.',
      section: 'rooms',
      head: html`<h1>Rooms</h1><p class="lead">A room is created by its first post, or by <a href="/docs/room.create">room.create</a>. Private rooms are never listed.</p>`,
      main: html`<form class="filters" role="search" aria-label="Search for rooms" action="/rooms"><label class="wide">Part of its name<input type="search" name="q" value="${q ?? ''}" maxlength="64"></label><button type="submit">Search</button></form>
${list.rooms.length === 0 ? empty('No matching rooms.') : html`<ul class="rows">${list.rooms.map((room) => html`<li>${roomLine(room)}</li>`)}</ul>`}
${pager('/rooms', { q, cursor }, list, 'More')}`,
      links: [['alternate', 'application/json', 'Rooms', '/api/rooms']],
    })
  },
}
