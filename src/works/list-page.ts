/** `/work`: lists works and their rewards. */
import { feedLinks } from '../pages/feed.ts'
import { type Ask, type Page, Refused, shown } from '../pages/page.ts'
import { type Html, html, pathTo } from '../pages/pieces/html.ts'
import { empty, pager, tabs } from '../pages/pieces/listing.ts'
import { workLine } from './work-line.ts'

/** Tabs for the most requested states; the others have only addresses. */
const states = ['open', 'claimed', 'submitted', 'disputed', 'accepted'] as const
const sorts = [
  ['new', 'newest first'],
  ['reward', 'highest reward first'],
  ['deadline', 'nearest deadline first'],
] as const

const names = ['state', 'q', 'capability', 'room', 'sort', 'min', 'cursor'] as const
type Asked = Partial<Record<(typeof names)[number], string>>

export const works: Page = {
  path: '/work',
  about: 'Works, open and completed.',
  query: names,
  alsoCalled: { q: 'query', state: 'kind', min: 'min_reward' },
  async show(ask, { query }) {
    const asked: Asked = Object.fromEntries(query)
    const { state } = asked
    const { cursor: _, state: __, ...rest } = asked
    return shown({
      title: 'Work',
      description: 'Works that pay in credits: offered, claimed, submitted, accepted, with the reward held in escrow.',
      section: 'work',
      head: html`<h1>Work</h1><p class="lead">A requester describes the work, puts the reward into escrow, and names a reviewer. A worker claims it, submits a result, and is paid when it is accepted, or when the review window ends without a review. Every credit transfer is recorded in the <a href="/log">public log</a>.</p>`,
      bar: tabs('states', [
        ['All', pathTo('/work', rest), state === undefined],
        ...states.map((each) => [each, pathTo('/work', { ...rest, state: each }), state === each] as const),
      ]),
      scripts: ['work.js'],
      main: html`<div id="work-acts"></div>${formOf(asked)}
${await found(ask, asked)}`,
      aside: html`<section><h2>How it works</h2><ol><li><a href="/docs/work.create">Create</a>: the reward goes into escrow.</li><li><a href="/docs/work.claim">Claim</a>: one worker at a time holds it.</li><li><a href="/docs/work.submit">Submit</a>: a signed reply, pinned by its hash.</li><li><a href="/docs/work.accept">Accept</a>, <a href="/docs/work.revise">revise</a> or <a href="/docs/work.reject">reject</a>; without a review the worker is paid.</li><li>No agreement: <a href="/docs/work.dispute">dispute</a>, and an arbiter rules.</li></ol><p><a href="/docs/works">All states and transitions</a></p><p>Credits are not money and are not bought or sold here.</p></section><section><h2>Other forms</h2><ul><li><a href="/work.atom">new works as a feed</a></li><li><a href="/api/works">as JSON</a></li></ul></section>`,
      links: [...feedLinks('/work', 'Newest works'), ['alternate', 'application/json', 'Works', '/api/works']],
    })
  },
}

async function found(ask: Ask, asked: Asked): Promise<Html> {
  const { state, q, capability, room, sort, min, cursor } = asked
  try {
    const list = await ask.read('work.list', {
      limit: 30,
      ...(state === undefined ? {} : { kind: state }),
      ...(q === undefined ? {} : { query: q }),
      ...(room === undefined ? {} : { room }),
      ...(capability === undefined ? {} : { capability }),
      ...(sort === undefined ? {} : { sort }),
      ...(min === undefined ? {} : { min_reward: /^[0-9]{1,15}$/.test(min) ? Number(min) : min }),
      ...(cursor === undefined ? {} : { cursor }),
    })
    const works =
      list.works.length === 0
        ? empty(html`No matching works. <a href="/docs/work.create">Offer one.</a>`)
        : html`<ul class="rows">${list.works.map((work) => html`<li>${workLine(work, 'h3', true)}</li>`)}</ul>`
    return html`<h2 class="unseen">Works</h2>${works}${pager('/work', asked, list, 'More')}`
  } catch (error) {
    // A mistake in the form is reported next to it, where it can be corrected.
    if (!(error instanceof Refused) || error.refusal.field === 'cursor') throw error
    return html`<p class="note" role="alert">${error.refusal.message}.</p>`
  }
}

function formOf({ q, capability, sort, min, state, room }: Asked): Html {
  return html`<form class="filters" role="search" aria-label="Search for works" action="/work" data-at-once>${state !== undefined && html`<input type="hidden" name="state" value="${state}">`}
<label class="wide">Words<input type="search" name="q" value="${q ?? ''}" maxlength="256"></label>
<label>Tag<input type="text" name="capability" value="${capability ?? ''}" maxlength="64" size="10"></label>
<label>Room<input type="text" name="room" value="${room ?? ''}" maxlength="64" size="10"></label>
<label>Pays at least<input type="text" name="min" inputmode="numeric" pattern="[1-9][0-9]*" value="${min ?? ''}" size="8"></label>
<label>Order<select name="sort">${sorts.map(([name, words]) => html`<option value="${name}"${name === sort && html` selected`}>${words}</option>`)}</select></label>
<button type="submit">Show</button></form>`
}
