/** Pages for things that do not exist, refusals, and faults: in the same style, with what to do instead. */
import { type Refusal, statusOf } from '../../actors/kernel/refusals.ts'
import { type Parts, type Shown, shown } from './page.ts'
import { type Html, html, pathTo } from './pieces/html.ts'
import { memberDocument, memberEntry } from './writer.ts'

const ways = html`<p>Try <a href="/">the lobby</a>, <a href="/rooms">all rooms</a>, <a href="/search">the search</a> or <a href="/docs">the documentation</a>.</p>`

export function notFoundPage(path: string): Shown {
  return shown(
    {
      title: 'Nothing here',
      isListed: false,
      head: html`<p class="crumbs">404</p><h1>There is nothing at this address</h1>`,
      main: html`<p>No page has the path <code>${path.slice(0, 120)}</code>.</p>${slashHint(path)}${ways}`,
    },
    404,
  )
}

/** Not for a path that begins with two slashes: a browser takes that for another host. */
function slashHint(path: string) {
  if (!path.endsWith('/') || path.startsWith('//')) return ''
  const shorter = path.slice(0, -1)
  return html`<p>No path here ends with a slash. Without it: <a href="${shorter}">${shorter.slice(0, 120)}</a></p>`
}

const titles: Readonly<Record<number, string>> = {
  400: 'Not found',
  403: 'Access denied',
  429: 'One moment',
}

/**
 * The reads themselves refuse private and unknown things alike. This only shows the refusal and the next step: a private room
 * or document can be opened with one's own key, and an expired list can be read from its beginning.
 */
export function refusedPage(
  { code, message, field, retryAfter }: Refusal,
  { path, query }: { path: string; query: string },
): Shown {
  const isPrivate = code === 'private_room'
  const room = isPrivate ? /^\/room\/([a-z0-9][a-z0-9_-]{0,63})$/.exec(path)?.[1] : undefined
  const document = isPrivate ? /^\/d\/([0-9a-f]{32})(?:\/history)?$/.exec(path)?.[1] : undefined
  const { cursor, ...rest } = Object.fromEntries(new URLSearchParams(query))
  const isOver = field === 'cursor' && cursor !== undefined
  const status = statusOf[code]
  const title = isOver ? 'This list has expired' : isPrivate ? 'Private room' : (titles[status] ?? 'Refused')
  const wait = retryAfter !== undefined && html`<p>Try again in ${retryAfter} s.</p>`
  const begin = isOver && html`<p><a href="${pathTo(path, rest)}">The first page of this list</a></p>`
  return shown(
    {
      title,
      isListed: false,
      head: html`<p class="crumbs">${room === undefined ? `${status} ${code}` : html`<a href="/rooms">Rooms</a>`}</p><h1>${title}</h1>`,
      main: html`<p>The board says: ${message}.</p>${wait}${begin}${room !== undefined && memberEntry(room)}${document !== undefined && memberDocument(document)}${ways}`,
      scripts: [...(room === undefined ? [] : ['write.js']), ...(document === undefined ? [] : ['document.js'])],
    },
    status,
  )
}

type SignInRefusal = {
  readonly error: string
  readonly description: string
  readonly retryAfter?: number | undefined
  /** The redirect that reports the refusal to the program that began the sign-in. */
  readonly location?: string | undefined
}

/** The refusal of a sign-in, which its program would get as JSON, for the person in front of it. */
export function signInRefusal(status: number, { error, description, retryAfter, location }: SignInRefusal): Parts {
  const title =
    status === 429 ? titles[429]! : status < 500 ? 'This sign-in cannot continue' : 'Something went wrong here'
  const wait = retryAfter !== undefined && html`<p>Try again in ${retryAfter} s.</p>`
  return {
    title,
    isListed: false,
    head: html`<p class="crumbs">${status} ${error}</p><h1>${title}</h1>`,
    main: html`<p>The board says: ${description}.</p>${wait}${location !== undefined && programLink(location)}${ways}`,
  }
}

function programLink(location: string): Html {
  const { protocol, host } = new URL(location)
  const place = /^https?:$/.test(protocol) ? host : protocol
  return html`<p>A program asked for this sign-in. Anyone can register a program, and this board has not checked it. To tell the program, go on to <a href="${location}" rel="nofollow noreferrer">${place}</a>, but only if you started this sign-in yourself.</p>`
}

export function unansweredPage(): Shown {
  return shown(
    {
      title: 'One moment',
      isListed: false,
      head: html`<p class="crumbs">429 overloaded</p><h1>The board did not answer in time</h1>`,
      main: html`<p>Nothing is lost. Load the page again in a moment.</p>`,
    },
    429,
  )
}

export function faultPage(id: string): Shown {
  return shown(
    {
      title: 'Internal error',
      isListed: false,
      head: html`<p class="crumbs">500</p><h1>Something went wrong here</h1>`,
      main: html`<p>This is an error of the board, not yours. It is logged as <code>${id}</code>; include this id when you contact the operator.</p>${ways}`,
    },
    500,
  )
}
