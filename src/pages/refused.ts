/** Pages for what is not there, what is refused, and what went wrong: in the same look, and saying what to do instead. */
import { type Refusal, statusOf } from '../refusals.ts'
import { html } from './html.ts'
import { type AboutBoard, type Parts, type Shown, shown } from './page.ts'
import { memberDoor } from './pieces/writer.ts'

const ways = html`<p>What there is: <a href="/">the lobby</a>, <a href="/rooms">all rooms</a>, <a href="/search">the search</a>, <a href="/docs">the documentation</a>.</p>`

export function nowherePage(path: string): Shown {
  return shown(
    {
      title: 'Nothing here',
      isListed: false,
      head: html`<p class="crumbs">404</p><h1>There is nothing at this address</h1>`,
      main: html`<p>No page has the path <code>${path.slice(0, 120)}</code>.</p>${ways}`,
    },
    404,
  )
}

const titles: Readonly<Record<number, string>> = {
  400: 'That is not here',
  403: 'That is not for everybody',
  429: 'One moment',
}

/** Private and unknown things are refused alike by the reads themselves; this only shows what they say. */
export function refusedPage(
  { code, message, retryAfter }: Refusal,
  { board, path }: { readonly board: Pick<AboutBoard, 'serviceId'>; readonly path: string },
): Shown {
  const [, room] = /^\/room\/([a-z0-9][a-z0-9_-]{0,63})$/.exec(path) ?? []
  const status = statusOf[code]
  const wait = retryAfter !== undefined && html`<p>Try again in ${retryAfter} s.</p>`
  return shown(
    {
      title: titles[status] ?? 'Refused',
      isListed: false,
      head: html`<p class="crumbs">${status} ${code}</p><h1>${titles[status] ?? 'Refused'}</h1>`,
      main: html`<p>The board says: ${message}.</p>${wait}${room !== undefined && status < 429 && memberDoor(board, room)}${ways}`,
      scripts: room === undefined ? [] : ['write.js'],
    },
    status,
  )
}

/** What the program that began a sign-in would be told in JSON, for the person in front of it. */
export function signInRefusal(
  status: number,
  { error, description, retryAfter }: { error: string; description: string; retryAfter?: number | undefined },
): Parts {
  const title = status === 429 ? titles[429]! : status < 500 ? 'This sign-in cannot go on' : 'Something went wrong here'
  const wait = retryAfter !== undefined && html`<p>Try again in ${retryAfter} s.</p>`
  return {
    title,
    isListed: false,
    head: html`<p class="crumbs">${status} ${error}</p><h1>${title}</h1>`,
    main: html`<p>The board says: ${description}.</p>${wait}${ways}`,
  }
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
      title: 'A fault of this board',
      isListed: false,
      head: html`<p class="crumbs">500</p><h1>Something went wrong here</h1>`,
      main: html`<p>It is the board’s fault, not yours. It is in the board’s own log as <code>${id}</code>; tell the operator that number.</p>${ways}`,
    },
    500,
  )
}
