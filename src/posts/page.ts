/** Pages of a post: `/e/{event_id}`, its thread with the post marked; its line as in lists; its history. */

import type { ResultOf, ShownEvent } from '../pages/data.ts'
import { feedLinks } from '../pages/feed.ts'
import { type Ask, type Page, type PageRequest, shown } from '../pages/page.ts'
import { changesPerPage } from '../pages/pieces/diff.ts'
import { type Html, html, nothing, pathTo } from '../pages/pieces/html.ts'
import { facts, pager } from '../pages/pieces/listing.ts'
import { nameOf, person } from '../pages/pieces/person.ts'
import { beginning, goneWords, isByModerator, sentence } from '../pages/pieces/text.ts'
import { countOf, when } from '../pages/pieces/time.ts'
import { postHtml, withParents } from '../pages/post.ts'
import { replyLimitOf, replyMark, writer } from '../pages/writer.ts'

const postsOfThread = 100
type ThreadPaging = Pick<ResultOf<'thread.get'>, 'has_earlier' | 'earlier_cursor' | 'next_cursor' | 'root_id'>
/** Replies to replies are nested this deep. Deeper ones are flat, and say what they reply to. */
const depthMax = 6

export const event: Page = {
  path: '/e/{event_id}',
  about: 'The thread of a post, nested.',
  query: ['cursor'],
  async show(ask, { path, parameters, query }: PageRequest) {
    const id = parameters.event_id!
    const cursor = query.get('cursor')
    const [{ event: asked }, thread] = await Promise.all([
      ask.read('event.get', { event_id: id }),
      ask.read('thread.get', {
        event_id: id,
        limit: postsOfThread,
        ...(cursor === undefined ? { start: 'event' } : { cursor }),
      }),
    ])
    const { events } = thread
    const target = asked.supersedes ?? asked.event_id
    const words = beginning(asked, 70) ?? (isByModerator(asked) ? 'A hidden post' : 'A post whose text is gone')
    const root = [asked, ...events].find(({ event_id: each }) => each === thread.root_id)
    const isHidden = root?.hidden === true && isByModerator(root)
    const isHere = events.some(({ event_id: each }) => each === target)
    const [tree, rooms] = await Promise.all([treeOf(ask, thread, target), roomsOf(ask, thread)])
    const moderators = moderatorsOf(rooms)
    const limit = replyLimitOf(rooms.own, thread.locked)
    return shown({
      title: `${nameOf(asked.author)}: ${words}`,
      description: beginning(asked, 200) ?? goneWords(asked),
      section: 'rooms',
      preview: `/e/${asked.event_id}/preview.png`,
      isListed: !asked.hidden,
      head: html`<p class="crumbs"><a href="/room/${asked.room}">${asked.room}</a>${thread.page !== 'main' && html` / <a href="${pathTo(`/room/${asked.room}`, { page: thread.page })}">${thread.page}</a>`}</p>
<h1 dir="auto"><a class="bare" href="/e/${thread.root_id}">${isHidden ? 'A hidden post' : thread.title}</a></h1>
<p class="line" data-moderators="${moderators.own.join(' ')}" data-list-moderators="${moderators.list.join(' ')}"${replyMark(limit)}><span id="replies">${countOf(thread.replies, 'reply', 'replies')}</span><span id="people">${thread.participants > 0 && countOf(thread.participants, 'person', 'people')}</span><button type="button" hidden data-follow-thread="${thread.root_id}">Follow this thread</button><span class="unread" id="unread" role="status"></span></p>`,
      main: html`<h2 class="unseen">Thread</h2>${threadPager(path, cursor, thread)}${limit !== undefined && limit !== 'members' && html`<p class="note">${limitWords[limit]}</p>`}${movedNote(thread)}${asked.supersedes !== undefined && html`<p class="note">This address refers to one version of the post below: see <a href="/e/${target}/history">its history</a>.</p>`}
${!isHere && cursor === undefined && html`<p class="note">The post at this address is on another page of this thread.</p><div class="posts">${await postHtml(ask, asked, { isTarget: true })}</div>`}
${tree}
${threadPager(path, cursor, thread)}
${(limit === undefined || limit === 'members') && writer({ room: asked.room, replyTo: thread.root_id, label: 'Reply to the thread', only: limit })}`,
      aside: html`<section><h2>This post</h2>${facts([
        ['by', person(asked.author)],
        ['written', when(asked.created_at)],
        ['number', html`${asked.seq} in <a href="/room/${asked.room}">${asked.room}</a>`],
        ['id', html`<code>${asked.event_id}</code>`],
        asked.kind === 'note' ? undefined : ['kind', asked.kind],
        asked.edited_at === undefined
          ? undefined
          : [
              'edited',
              html`<a href="/e/${target}/history">${countOf(asked.versions ?? 2, 'version')}</a>, ${when(asked.edited_at)}`,
            ],
        asked.expires_at === undefined ? undefined : ['text kept until', when(asked.expires_at)],
        ['votes', `${asked.votes.up} for, ${asked.votes.down} against`],
      ])}</section>
<section><h2>Check it</h2><p>${asked.log.state === 'included' ? html`It is leaf ${asked.log.index} of the public log: <a href="/e/${asked.event_id}/proof">let your browser check the proof</a>.` : 'It is not in the public log.'}</p>
<p><button type="button" hidden data-copy-from="/api/events/${asked.event_id}">Copy as JSON</button> <a href="/api/events/${asked.event_id}">as JSON</a></p>
<p><a href="/api/thread/${asked.event_id}">The thread as JSON</a></p></section>`,
      scripts: ['thread.js', 'posts.js', 'write.js'],
      links: [
        ...feedLinks(`/e/${asked.thread}`, 'This thread'),
        [
          'alternate',
          'application/json+oembed',
          thread.title,
          pathTo('/oembed', { url: `${ask.board.address}${path}` }),
        ],
        ['alternate', 'application/json', 'This thread', `/api/thread/${asked.event_id}`],
      ],
    })
  },
}

type RoomData = ResultOf<'room.get'>['room']
type Rooms = { readonly own: RoomData; readonly list: RoomData | undefined }

/** The room that the posts of a thread are signed for, and the one that lists it instead. */
async function roomsOf(ask: Ask, { room, moved }: ResultOf<'thread.get'>): Promise<Rooms> {
  const [own, list] = await Promise.all([
    ask.read('room.get', { room }),
    moved === undefined ? undefined : ask.read('room.get', { room: moved.to }),
  ])
  return { own: own.room, list: list?.room }
}

type Moderators = { readonly own: readonly string[]; readonly list: readonly string[] }

/** Identity ids of those who moderate this thread, and of those who may only send it back, because their room lists it. */
function moderatorsOf({ own, list }: Rooms): Moderators {
  const idsOf = ({ owner, moderators }: RoomData) => (owner === undefined ? moderators : [owner, ...moderators])
  const ids = idsOf(own)
  return { own: ids, list: list === undefined ? [] : idsOf(list).filter((id) => !ids.includes(id)) }
}

const limitWords = {
  closed: 'The room of this thread is closed: it is read-only.',
  none: 'This room accepts no replies.',
  moderators: 'This thread is locked: only moderators of its room can reply.',
} as const

function movedNote({ moved, room }: ResultOf<'thread.get'>): Html | false {
  if (moved === undefined) return false
  const { to, by, handle, at, reason } = moved
  const who = handle === undefined ? { id: by } : { id: by, handle }
  return html`<p class="note">This thread was moved to <a href="/room/${to}">${to}</a> by <a href="/i/${by}">${nameOf(who)}</a>, ${when(at)}${reason === undefined ? '.' : html`: ${sentence(reason)}`} Its posts are signed for <a href="/room/${room}">${room}</a>, and so are replies.</p>`
}

/** Links in both directions for a page of a thread with several; without a cursor, the address leads to the page with its post. */
function threadPager(path: string, cursor: string | undefined, thread: ThreadPaging): Html {
  const { has_earlier: hasEarlier, earlier_cursor: earlier, next_cursor: next, root_id: root } = thread
  if (hasEarlier !== true && next === undefined) return nothing
  const before = earlier === undefined ? `/e/${root}` : pathTo(path, { cursor: earlier })
  const back = cursor !== undefined && html`<a href="${path}">Back to the post</a>`
  return html`<nav class="pager" aria-label="pages of this thread">${hasEarlier === true && html`<a rel="prev" href="${before}">← Earlier replies</a>`}${back}${next !== undefined && html`<a rel="next" href="${pathTo(path, { cursor: next })}">Later replies →</a>`}</nav>`
}

/** Children under their parents, in chronological order. A post whose parent is on another page is at the top level. */
async function treeOf(
  ask: Ask,
  { events, root_id: root, room }: ResultOf<'thread.get'>,
  target: string,
): Promise<Html> {
  const here = new Map(events.map((each) => [each.event_id, each]))
  const children = new Map<string, ShownEvent[]>()
  const outside: ShownEvent[] = []
  for (const each of events) {
    const parent = each.reply_to
    if (parent === undefined || !here.has(parent)) outside.push(each)
    else children.set(parent, [...(children.get(parent) ?? []), each])
  }
  const quoted = await withParents(ask, outside)
  const branch = async (each: ShownEvent, depth: number): Promise<Html> => {
    const isFlat = depth >= depthMax
    const below = children.get(each.event_id) ?? []
    const [post, ...items] = await Promise.all([
      postHtml(ask, each, {
        among: isFlat ? here : quoted,
        isTarget: each.event_id === target,
        isOpenedAt: each.event_id === target && each.reply_to !== undefined,
        // If the nesting does not show it, the post says what it replies to.
        isListed: false,
        showsParent: isFlat || depth === 0,
      }),
      ...below.map(async (child) => html`<li>${await branch(child, depth + 1)}</li>`),
    ])
    return below.length === 0 ? post : html`${post}<ol class="replies${isFlat && ' flat'}">${items}</ol>`
  }
  const trees = await Promise.all(outside.map((each) => branch(each, 0)))
  return trees.length === 0
    ? nothing
    : html`<div class="posts" data-thread-posts="${root}" data-room="${room}">${trees}</div>`
}

/**
 * `/e/{event_id}/line`: one post as in lists, and nothing around it. An open page requests it when a post arrives that only this renderer
 * can lay out (assets/live.js). Cached like every page, so that it is built once for all readers.
 */
export const postLine: Page = {
  path: '/e/{event_id}/line',
  about: 'One post as a list item, for open pages.',
  async show(ask, { parameters }) {
    const { event } = await ask.read('event.get', { event_id: parameters.event_id! })
    const post = await postHtml(ask, event, { isListed: true, withPage: true })
    const body = html`<!DOCTYPE html>
<html lang="en"><meta name="robots" content="noindex"><title>A post</title>
${post}
</html>
`
    return { kind: 'bytes', type: 'text/html; charset=utf-8', body: Buffer.from(body.text) }
  },
}

const versionsOfPage = 10
/** The page's budget for computing differences, divided among its versions. */
const changesOfVersion = changesPerPage / versionsOfPage

/** `/e/{event_id}/history`: every version of a post as it was signed, and what each changed. */
export const history: Page = {
  path: '/e/{event_id}/history',
  about: 'Every version of a post, with its changes.',
  query: ['cursor'],
  async show(ask, { path, parameters, query }) {
    const cursor = query.get('cursor')
    const list = await ask.read('event.history', {
      event_id: parameters.event_id!,
      limit: versionsOfPage,
      ...(cursor === undefined ? {} : { cursor }),
    })
    const { events, versions, event_id: original, first_number: number, previous_id: previous } = list
    const before = previous === undefined ? undefined : await versionAt(ask, previous, original)
    const items = await Promise.all(
      events.map((version, n) => versionHtml(ask, version, n === 0 ? before : events[n - 1], number + n)),
    )
    const [first] = events
    return shown({
      title: `History of post ${original.slice(0, 8)}`,
      section: 'rooms',
      isListed: false,
      head: html`<p class="crumbs"><a href="/e/${original}">The post</a></p><h1>${countOf(versions, 'version')}${first !== undefined && html` by ${nameOf(first.author)}`}</h1><p class="lead">Each version is a separate signed post, with its own leaf in the public log: it never replaces an earlier version.</p>`,
      main: html`<ol class="timeline">${items}</ol>${pager(path, { cursor }, list, 'Later versions')}`,
    })
  },
}

/** A single version: under the id of the original, the API returns the newest. */
async function versionAt(ask: Ask, id: string, original: string): Promise<ShownEvent | undefined> {
  if (id !== original) return (await ask.read('event.get', { event_id: id })).event
  return (await ask.read('event.history', { event_id: id, limit: 1 })).events[0]
}

async function versionHtml(
  ask: Ask,
  version: ShownEvent,
  before: ShownEvent | undefined,
  number: number,
): Promise<Html> {
  const { event_id: id, created_at: at, text } = version
  const whole = number === 1 ? `/api/history/${id}?limit=1` : `/api/events/${id}`
  const body =
    text === undefined
      ? html`<p class="text gone">${goneWords(version)}</p>`
      : before?.text === undefined
        ? await ask.text({ kind: 'text', text, whole })
        : await ask.text({ kind: 'diff', before: before.text, text, whole, changesMax: changesOfVersion })
  return html`<li><h2 class="line">Version ${number} · ${when(at)}</h2>${body}<p class="line"><a href="/e/${id}/proof">its own proof</a><a href="/api/events/${id}">as JSON</a></p></li>`
}
