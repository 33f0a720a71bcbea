/** `/rooms` and `/room/{room}`: a room's threads, its posts as they arrive, its documents. */

import type { ResultOf } from '../pages/data.ts'
import { feedLinks } from '../pages/feed.ts'
import { type Ask, type Page, shown } from '../pages/page.ts'
import { activityPlot } from '../pages/pieces/activity-plot.ts'
import { type Html, html, pathTo } from '../pages/pieces/html.ts'
import { empty, facts, pager, tabs } from '../pages/pieces/listing.ts'
import { liveList } from '../pages/pieces/live.ts'
import { person } from '../pages/pieces/person.ts'
import { excerpt } from '../pages/pieces/text.ts'
import { countOf, when, whole } from '../pages/pieces/time.ts'
import { postsHtml } from '../pages/post.ts'
import { replyLimitOf, replyMark, writer } from '../pages/writer.ts'
import { threadRows } from '../threads/thread-rows.ts'

const postsOfPage = 50
const threadsOfPage = 30
const docsOfPage = 50

const views = [
  ['threads', 'Threads'],
  ['posts', 'All posts, live'],
  ['documents', 'Documents'],
] as const
type View = (typeof views)[number][0]

const scriptsOf = { threads: ['thread.js'], posts: ['live.js'], documents: ['document.js'], still: [] } as const

type RoomData = ResultOf<'room.get'>['room']

/** Who may start threads and create documents, if not everyone. */
function startersOf({ policy }: RoomData): 'members' | 'owner' | undefined {
  return policy === undefined || policy.write === 'open' ? undefined : policy.write
}

/** What the address of a room requests. */
type Place = {
  readonly room: RoomData
  readonly page: string | undefined
  readonly view: View
  readonly cursor: string | undefined
}

export const room: Page = {
  path: '/room/{room}',
  about: 'A room: its threads, all its posts as they come, its documents; its pages as tabs.',
  query: ['page', 'view', 'cursor'],
  async show(ask, { parameters, query }) {
    const name = parameters.room!
    const [page, cursor] = [query.get('page'), query.get('cursor')]
    const view = views.find(([each]) => each === query.get('view'))?.[0] ?? 'threads'
    // The stream delivers the entire room. Its newest event is read before the list, so that anything arriving between the two is shown
    // twice rather than missed.
    const isLive = view === 'posts' && cursor === undefined
    const [{ room: about }, newest] = await Promise.all([
      ask.read('room.get', { room: name }),
      isLive ? ask.read('events.list', { room: name, limit: 1 }) : undefined,
    ])
    const only = startersOf(about)
    const place: Place = { room: about, page, view, cursor }
    const [main, { pages }, activity] = await Promise.all([
      contentOf(ask, place, newest?.events[0]?.event_id),
      ask.read('room.pages', { room: name, limit: 12 }),
      ask.read('board.activity', { room: name, step: 86_400, bars: 30 }),
    ])
    return shown({
      title: page === undefined ? name : `${name} / ${page}`,
      description: about.about === undefined ? `The room ${name} of this board.` : excerpt(about.about, 200),
      section: 'rooms',
      preview: `/room/${name}/preview.png`,
      head: html`<p class="crumbs"><a href="/rooms">Rooms</a></p><div class="opening"${replyMark(replyLimitOf(about))}><div><h1>${name}</h1>${about.about !== undefined && html`<p class="lead" dir="auto">${excerpt(about.about, 400)}</p>`}<p class="quiet">${countOf(about.count, 'post')}</p></div>${!about.closed && html`<p class="actions"><a class="button strong" href="#write"${only !== undefined && html` hidden data-only="${only}"`}>New thread</a><button type="button" hidden data-follow-room="${name}">Follow</button></p>`}</div>${about.closed && html`<p class="note">This room is closed: it is read-only.</p>`}`,
      bar: barOf(place, pages),
      main: html`${!about.closed && writer({ room: name, page, only })}${main}`,
      aside: html`<section><h2>About</h2>${facts([
        ['threads', whole(about.threads)],
        ['people', about.members === 0 ? 'open to all' : countOf(about.members, 'member')],
        about.owner === undefined ? undefined : ['owner', person({ id: about.owner, handle: about.owner_handle })],
        ['began', when(about.created_at)],
      ])}<p><a href="${pathTo('/account/rooms', { room: name })}">People and policy</a></p></section>
${rulesOf(about)}
<section><h2>The last 30 days</h2>${activityPlot(activity, 'in the last 30 days')}</section>
<section><h2>For programs</h2><p><a href="/tail/${name}">Stream</a> · <a href="/api/threads?room=${name}">JSON</a> · <a href="/room/${name}.atom">Atom</a> · <a href="${pathTo('/embed', { room: name })}">Embed</a> · <a href="${pathTo('/v1/export', { room: name })}">Export</a> · <a href="${pathTo('/search', { room: name })}">Search</a></p></section>`,
      scripts: [...scriptsFor(place, isLive), 'posts.js', 'write.js'],
      links: [
        ...feedLinks(`/room/${name}`, `Threads of ${name}`),
        ['alternate', 'application/json+oembed', name, pathTo('/oembed', { url: `${ask.board.address}/room/${name}` })],
        ['alternate', 'application/json', `Posts of ${name}`, `/api/events?room=${name}`],
      ],
    })
  },
}

function scriptsFor({ room, view }: Place, isLive: boolean) {
  // In a closed room, there is nothing to do on the list of documents.
  const isStill = view === 'posts' ? !isLive : view === 'documents' && room.closed
  return scriptsOf[isStill ? 'still' : view]
}

/** `newest`: of the room, if its posts are shown live. */
function contentOf(ask: Ask, place: Place, newest: string | undefined): Promise<Html> {
  if (place.view === 'posts') return postsOf(ask, place, newest)
  return place.view === 'threads' ? threadsOf(ask, place) : docsOf(ask, place)
}

/** The request fields for a list of this place. */
function listed({ room: { name }, page, cursor }: Place) {
  return { room: name, ...(page === undefined ? {} : { page }), ...(cursor === undefined ? {} : { cursor }) }
}

async function threadsOf(ask: Ask, place: Place): Promise<Html> {
  const list = await ask.read('threads.list', { ...listed(place), limit: threadsOfPage })
  const { pinned = [] } = list
  const onTop = new Set(pinned.map(({ thread }) => thread))
  const rest = list.threads.filter(({ thread }) => !onTop.has(thread))
  const rows = threadRows([...pinned, ...rest], { hasMore: list.has_more, none: 'There are no threads here yet.' })
  return html`<h2 class="unseen">Threads</h2>${rows}
${pagerOf(place, list, 'More threads')}`
}

async function postsOf(ask: Ask, place: Place, newest: string | undefined): Promise<Html> {
  const { room, page, cursor } = place
  const list = await ask.read('events.list', { ...listed(place), limit: postsOfPage })
  const { events } = list
  const posts =
    events.length === 0
      ? empty('There are no posts here yet.')
      : await postsHtml(ask, events, { isListed: true, withPage: page === undefined })
  const shownList =
    cursor === undefined
      ? liveList({ room: room.name, page, newest, change: ask.change, most: 500 }, posts)
      : html`<div class="posts">${posts}</div>`
  return html`<h2 class="unseen">Posts</h2>${shownList}
${pagerOf(place, list, 'Older')}`
}

async function docsOf(ask: Ask, place: Place): Promise<Html> {
  const { room, cursor } = place
  const list = await ask.read('docs.list', {
    room: room.name,
    limit: docsOfPage,
    ...(cursor === undefined ? {} : { cursor }),
  })
  const rows =
    list.docs.length === 0
      ? empty('There are no documents here yet.')
      : html`<ul class="rows">${list.docs.map((doc) => html`<li><a href="/d/${doc.id}"><b dir="auto">${doc.title}</b></a><div class="line"><span>${countOf(doc.versions, 'version')}</span><span>${when(doc.updated_at)}</span></div></li>`)}</ul>`
  const only = startersOf(room)
  return html`<h2 class="unseen">Documents</h2>${!room.closed && html`<div id="document-acts" data-room="${room.name}"${only !== undefined && html` data-only="${only}"`}></div>`}${rows}
${pagerOf(place, list, 'More documents')}`
}

function pagerOf({ room, page, view, cursor }: Place, list: Parameters<typeof pager>[2], words: string): Html {
  return pager(`/room/${room.name}`, { page, view: viewName(view), cursor }, list, words)
}

/** As in addresses, where threads are the default view. */
function viewName(view: View): string | undefined {
  return view === 'threads' ? undefined : view
}

/** Filled by assets/posts.js for readers who follow the room. */
const unread = html`<p class="quiet unread" id="unread" role="status"></p>`

function barOf({ room, page, view }: Place, pages: ResultOf<'room.pages'>['pages']): Html {
  const path = `/room/${room.name}`
  const shownViews = tabs(
    'what is shown',
    views.map(([each, words]) => [words, pathTo(path, { page, view: viewName(each) }), each === view] as const),
  )
  if (view === 'documents' || (pages.length < 2 && page === undefined))
    return html`<div class="bars">${shownViews}${unread}</div>`
  const each = pages.map(
    ({ name, count }) =>
      [
        html`${name} <span class="quiet">${count}</span>`,
        pathTo(path, { page: name, view: viewName(view) }),
        page === name,
      ] as const,
  )
  return html`<div class="bars">${shownViews}${tabs('pages of this room', [['All', pathTo(path, { view: viewName(view) }), page === undefined], ...each])}${unread}</div>`
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
  return html`<section><h2>Rules</h2>${rules !== undefined && rules !== '' && html`<p class="rules" dir="auto">${String(rules)}</p>`}${words.map((each) => html`<p>${each}</p>`)}</section>`
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
      head: html`<div class="opening"><div><h1>Rooms</h1><p class="lead">Each has its own people and rules. Private rooms are not listed here: <a href="/account/rooms">Your rooms</a> has those that you are in.</p></div><p class="actions"><a class="button strong" href="/account/rooms">New room</a></p></div>`,
      main: html`<form class="filters" role="search" aria-label="Search for rooms" action="/rooms"><label class="wide">Part of its name<input type="search" name="q" value="${q ?? ''}" maxlength="64"></label><button type="submit">Search</button></form>
${list.rooms.length === 0 ? empty('No matching rooms.') : html`<ul class="rows">${list.rooms.map((room) => html`<li>${roomLine(room)}</li>`)}</ul>`}
${pager('/rooms', { q, cursor }, list, 'More')}`,
      links: [['alternate', 'application/json', 'Rooms', '/api/rooms']],
    })
  },
}

/** A room in the list: its name, topic and size. */
function roomLine({ name, about, count, updated_at: at, closed }: RoomData): Html {
  return html`<a href="/room/${name}"><b>${name}</b></a>${closed && html` <span class="tag">closed</span>`}${about !== undefined && html`<p class="quiet" dir="auto">${excerpt(about, 110)}</p>`}<div class="line"><span>${countOf(count, 'post')}</span>${count > 0 && html`<span>${when(at)}</span>`}</div>`
}
