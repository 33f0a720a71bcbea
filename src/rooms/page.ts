/** `/rooms`, and `/room/{room}`: its pages are tabs; posts come in order of time, or as threads. */

import type { ResultOf, ShownEvent } from '../pages/data.ts'
import { feedLinks } from '../pages/feed.ts'
import { type Ask, type Page, shown } from '../pages/page.ts'
import { activityPlot } from '../pages/pieces/activity-plot.ts'
import { type Html, html, joined, pathTo } from '../pages/pieces/html.ts'
import { empty, facts, pager, tabs } from '../pages/pieces/listing.ts'
import { liveList } from '../pages/pieces/live.ts'
import { person, shortId } from '../pages/pieces/person.ts'
import { excerpt } from '../pages/pieces/text.ts'
import { countOf, when, whole } from '../pages/pieces/time.ts'
import { postHtml, postsHtml } from '../pages/post.ts'
import { writer } from '../pages/writer.ts'
import { type RoomData, roomLine } from './room-line.ts'

const postsOfPage = 50

export const room: Page = {
  path: '/room/{room}',
  about: 'A live room, with its pages as tabs, by time or as threads.',
  query: ['page', 'view', 'cursor'],
  async show(ask, { path, parameters, query }) {
    const name = parameters.room!
    const [page, cursor] = [query.get('page'), query.get('cursor')]
    const isThreads = query.get('view') === 'threads'
    const isLive = !isThreads && cursor === undefined
    // The stream brings the whole room. Its newest is asked for before the list: what comes between the two is shown twice, never missed.
    const [{ room: about }, newest] = await Promise.all([
      ask.read('room.get', { room: name }),
      isLive && page !== undefined ? ask.read('events.list', { room: name, limit: 1 }) : undefined,
    ])
    const [list, { pages }, activity, { docs }] = await Promise.all([
      ask.read('events.list', {
        room: name,
        limit: postsOfPage,
        ...(page === undefined ? {} : { page }),
        ...(cursor === undefined ? {} : { cursor }),
      }),
      ask.read('room.pages', { room: name, limit: 12 }),
      ask.read('board.activity', { room: name, step: 86_400, bars: 30 }),
      ask.read('docs.list', { room: name, limit: 8 }),
    ])
    const { events } = list
    const own = { page, view: isThreads ? 'threads' : undefined, cursor }
    const shownList = isThreads
      ? threads(ask, events)
      : postsHtml(ask, events, { isListed: true, withPage: page === undefined })
    const posts = events.length === 0 ? empty('Nothing here yet.') : await shownList
    return shown({
      title: page === undefined ? name : `${name} / ${page}`,
      description: about.about === undefined ? `The room ${name} of this board.` : excerpt(about.about, 200),
      section: 'rooms',
      preview: `/room/${name}/preview.png`,
      head: html`<p class="crumbs"><a href="/rooms">Rooms</a></p><h1>${name}</h1>${about.about !== undefined && html`<p class="lead">${excerpt(about.about, 400)}</p>`}${about.closed && html`<p class="note">This room is closed: it is read-only.</p>`}`,
      bar: pageTabs(name, page, pages, isThreads),
      main: html`${!about.closed && writer(ask.board, { room: name, page })}<h2 class="unseen">${isThreads ? 'Threads' : 'Posts'}</h2>${isLive ? liveList({ room: name, page, newest: (newest ?? list).events[0]?.event_id, change: ask.change, most: 500 }, posts) : html`<div class="posts">${posts}</div>`}
${pager(path, own, list)}`,
      aside: html`<section><h2>About</h2>${facts([
        ['posts', whole(about.count)],
        ['threads', whole(about.threads)],
        ['people', about.members === 0 ? 'open to all' : countOf(about.members, 'member')],
        about.owner === undefined ? undefined : ['owner', person({ id: about.owner, handle: about.owner_handle })],
        ['made', when(about.created_at)],
      ])}</section>
<section><h2>The last 30 days</h2>${activityPlot(activity, 'in the last 30 days')}</section>
${docs.length > 0 && html`<section><h2>Documents</h2><ul>${docs.map((doc) => html`<li><a href="/d/${doc.id}">${doc.title}</a></li>`)}</ul></section>`}
${rulesOf(about)}
<section><h2>Other ways to read</h2><ul><li><a href="/tail/${name}">as plain text, live</a></li><li><a href="/api/events?room=${name}">as JSON</a></li><li><a href="${pathTo('/v1/export', { room: name })}">everything, with signatures</a></li><li><a href="${pathTo('/embed', { room: name })}">on your own page</a></li><li><a href="${pathTo('/search', { room: name })}">search this room</a></li></ul></section>`,
      scripts: isLive ? ['live.js', 'write.js'] : ['write.js'],
      links: [
        ...feedLinks(`/room/${name}`, `Threads of ${name}`),
        ['alternate', 'application/json', `Posts of ${name}`, `/api/events?room=${name}`],
      ],
    })
  },
}

function pageTabs(
  name: string,
  page: string | undefined,
  pages: ResultOf<'room.pages'>['pages'],
  isThreads: boolean,
): Html {
  const path = `/room/${name}`
  const view = isThreads ? 'threads' : undefined
  const views = tabs('how it is shown', [
    ['By time', pathTo(path, { page }), !isThreads],
    ['Threads', pathTo(path, { page, view: 'threads' }), isThreads],
  ])
  if (pages.length < 2 && page === undefined) return html`<div class="bars">${views}</div>`
  const each = pages.map(
    ({ name: one, count }) =>
      [html`${one} <span class="quiet">${count}</span>`, pathTo(path, { page: one, view }), page === one] as const,
  )
  return html`<div class="bars">${tabs('pages of this room', [['All', pathTo(path, { view }), page === undefined], ...each])}${views}</div>`
}

function rulesOf({ policy }: RoomData): Html {
  if (policy === undefined) return html``
  const { write, reply, rules, promotion } = policy
  const words = [
    write === 'open' ? undefined : `Only ${write === 'owner' ? 'its owner' : 'members'} may start threads.`,
    reply === 'anyone' ? undefined : reply === 'none' ? 'Replies are off.' : 'Only members may reply.',
    promotion === 'moderate' ? 'Advertisements are hidden.' : undefined,
  ].filter((each) => each !== undefined)
  if (words.length === 0 && (rules === undefined || rules === '')) return html``
  return html`<section><h2>Rules</h2>${rules !== undefined && rules !== '' && html`<p>${String(rules)}</p>`}${words.map((each) => html`<p>${each}</p>`)}</section>`
}

/** The posts of this page by thread, newest thread first: each root, where it is here, and its newest replies in order. */
async function threads(ask: Ask, events: readonly ShownEvent[]): Promise<Html> {
  const byThread = new Map<string, ShownEvent[]>()
  for (const event of events) byThread.set(event.thread, [event, ...(byThread.get(event.thread) ?? [])])
  const among = new Map(events.map((event) => [event.event_id, event]))
  const groups = [...byThread].map(async ([root, members]) => {
    const begin = among.get(root)
    const replies = members.filter(({ event_id: id }) => id !== root)
    const head =
      begin === undefined
        ? html`<p class="context">in the thread <a href="/e/${root}">${shortId(root)}</a></p>`
        : await postHtml(ask, begin, { isListed: true, among })
    const items = await Promise.all(
      replies.map(async (each) => html`<li>${await postHtml(ask, each, { isListed: true, among })}</li>`),
    )
    return html`<section class="thread">${head}${items.length > 0 && html`<ol class="replies">${items}</ol>`}</section>`
  })
  return joined(await Promise.all(groups), '\n')
}

/** `/rooms`: every public room, latest activity first. */
export const rooms: Page = {
  path: '/rooms',
  about: 'All public rooms.',
  query: ['q', 'cursor'],
  alsoCalled: { q: 'query' },
  async show(ask, { query }) {
    const [q, cursor] = [query.get('q'), query.get('cursor')]
    const list = await ask.read('rooms.list', {
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
