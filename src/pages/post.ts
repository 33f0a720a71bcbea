/**
 * One post, in a list or a thread: author, time, content, what it answers, attachments, and where it is proved. `assets/live.js` builds the
 * same for posts that arrive while a page is open; the parts that it fills have the class names used here.
 */

import { importedText } from '../format/imported.ts'
import type { ShownEvent } from './data.ts'
import type { Ask } from './page.ts'
import { type Html, html, joined, pathTo } from './pieces/html.ts'
import { nameOf, person, shortId } from './pieces/person.ts'
import { beginning, cutTo, goneWords, isByModerator } from './pieces/text.ts'
import { bytes, countOf, when } from './pieces/time.ts'

/** Characters of one text in a list: half a screen; the whole text is on the post's own page. */
const listedChars = 700
/** The same for a reply in a thread that is not the requested post. */
const threadChars = 6_000

type PostOptions = {
  /** Other events of the same page by id, so that a reply can quote what it answers. */
  readonly among?: ReadonlyMap<string, ShownEvent>
  /** In a list: the text is cut, and links to the thread. */
  readonly isListed?: boolean
  /** The room is shown, because it is not the page's. */
  readonly withRoom?: boolean
  /** The page of the room is shown. */
  readonly withPage?: boolean
  /** The post that the address names. */
  readonly isTarget?: boolean
  /** The page opens scrolled to it. */
  readonly isOpenedAt?: boolean
  /** What it answers is stated in words, because its position does not show it. */
  readonly showsParent?: boolean
}

export async function postHtml(ask: Ask, event: ShownEvent, options: PostOptions = {}): Promise<Html> {
  const { event_id: id, room, page, kind, author, seq } = event
  const place = html`${options.withRoom === true && html`<a class="place" href="/room/${room}">${room}</a>`}${
    options.withPage === true &&
    page !== 'main' &&
    html`<a class="place" href="${pathTo(`/room/${room}`, { page })}">${page}</a>`
  }`
  const kindTag = kind === 'note' ? undefined : html`<span class="tag">${kind}</span>`
  const edited =
    event.edited_at === undefined
      ? undefined
      : html`<a class="quiet" href="/e/${id}/history">edited, ${countOf(event.versions ?? 2, 'version')}</a>`
  const imported =
    event.source !== undefined &&
    html`<span class="quiet imported" title="as its importer claims: ${event.source.system} ${event.source.id}">${importedText(event.source)}</span>`
  const expires =
    event.expires_at !== undefined && !event.hidden && html`<span class="quiet">until ${when(event.expires_at)}</span>`
  return html`<article class="post${options.isTarget === true && ' target'}${event.hidden && ' gone'}" id="e-${id}"${options.isOpenedAt === true && html` tabindex="-1" autofocus`} data-id="${id}" data-seq="${seq}" data-room="${room}"${event.expires_at !== undefined && !event.hidden && html` data-expires="${event.expires_at}"`}>
<div class="by">${person(author)}<span class="at"><a href="/e/${id}" title="link to this post">${when(event.created_at)}</a></span>${place}${kindTag}${imported}${edited}${expires}</div>
${contextOf(event, options)}${await bodyOf(ask, event, options)}
<div class="under"><a class="quiet" href="/e/${id}">${options.isListed === true ? 'thread' : `no. ${seq}`}</a>${votesOf(event)}${proofOf(event)}</div>
</article>`
}

export async function postsHtml(ask: Ask, events: readonly ShownEvent[], options: PostOptions = {}): Promise<Html> {
  const among = options.among ?? (await withParents(ask, events))
  return joined(await Promise.all(events.map((event) => postHtml(ask, event, { ...options, among }))), '\n')
}

/** These events by id, and the events that they answer elsewhere, so that those can be quoted. */
export async function withParents(ask: Ask, events: readonly ShownEvent[]): Promise<ReadonlyMap<string, ShownEvent>> {
  const among = new Map(events.map((event) => [event.event_id, event]))
  const elsewhere = new Set(
    events.map(({ reply_to: parent }) => parent).filter((id) => id !== undefined && !among.has(id)),
  )
  await Promise.all(
    [...elsewhere].map(async (id) => {
      const found = id === undefined ? undefined : await ask.find('event.get', { event_id: id })
      if (id !== undefined && found !== undefined) among.set(id, found.event)
    }),
  )
  return among
}

function contextOf(
  { reply_to: parent, to, to_id: toId = to }: ShownEvent,
  { among, isListed, showsParent = isListed }: PostOptions,
): Html {
  const answered = parent === undefined ? undefined : among?.get(parent)
  const words =
    answered === undefined
      ? undefined
      : html`<span>${nameOf(answered.author)}: <bdi>${beginning(answered, 80) ?? '(gone)'}</bdi></span>`
  const reply =
    parent !== undefined &&
    showsParent === true &&
    html`<p class="context">in reply to <a href="/e/${parent}">${words ?? shortId(parent)}</a></p>`
  const addressed =
    to !== undefined &&
    html`<p class="context">for <a href="/i/${toId}">${to.startsWith('@') ? to : shortId(to)}</a></p>`
  return html`${reply}${addressed}`
}

async function bodyOf(ask: Ask, event: ShownEvent, { isListed, isTarget }: PostOptions): Promise<Html> {
  if (event.text === undefined)
    return html`<p class="text gone">${goneWords(event)}${isByModerator(event) ? html` <a href="/moderation">Moderation log</a>` : ' Its place, author and proof remain.'}</p>`
  const most = isTarget === true ? Number.POSITIVE_INFINITY : isListed === true ? listedChars : threadChars
  const isCut = event.text.length > most
  const { format = 'text', event_id: id, version_id: version = id } = event
  // The whole of another post is on its page; for the page's own post, it is at the API, which needs no layout.
  const whole = isTarget === true ? `/api/events/${version}` : `/e/${id}`
  const item = { kind: format, text: isCut ? cutTo(event.text, most) : event.text, whole }
  const shown = await (isTarget === true ? ask.mainText(item) : ask.text(item))
  const body = format === 'markdown' ? html`<div class="text prose" dir="auto">${shown}</div>` : shown
  const more =
    isCut &&
    html`<p class="more"><a href="/e/${event.event_id}">Read the full text (${bytes(Buffer.byteLength(event.text))})</a></p>`
  return html`${body}${more}${filesOf(event)}`
}

function filesOf({ attachments = [] }: ShownEvent): Html {
  if (attachments.length === 0) return html``
  const items = attachments.map(({ id, filename, media_type: type, size, gone, reason }) =>
    gone === undefined
      ? html`<li><a href="/a/${id}" download>${filename ?? shortId(id)}</a> <span class="quiet">${type ?? 'file'}, ${bytes(size)}</span></li>`
      : html`<li class="quiet">a file that was deleted${reason !== undefined && reason !== '' && `: ${reason}`}</li>`,
  )
  return html`<ul class="files" aria-label="attachments">${items}</ul>`
}

function votesOf({ votes: { up, down } }: ShownEvent): Html {
  if (up + down === 0) return html``
  return html`<span class="votes" title="${up} for, ${down} against"><span aria-hidden="true">▲</span>${up} <span class="unseen">votes for, </span><span aria-hidden="true">▼</span>${down}<span class="unseen"> against</span></span>`
}

function proofOf({ event_id: id, log }: ShownEvent): Html {
  if (log.state !== 'included') return html``
  return html`<a class="quiet proof" href="/e/${id}/proof" title="leaf ${log.index} of the public log: verify it yourself">signed, in the log</a>`
}
