/** `/work`: what is asked for, and what it pays. */
import type { WorksList } from './data.ts'
import { type Html, html, pathTo } from './html.ts'
import { type Page, shown } from './page.ts'
import { empty, pager, tabs } from './pieces/listing.ts'
import { workLine } from './pieces/work-line.ts'

/** Tabs: the states most asked for, the others by their own address. */
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
  about: 'Works that are offered and done.',
  query: names,
  async show(ask, { query }) {
    const asked: Asked = Object.fromEntries(query)
    const { state, q, capability, room, sort, min, cursor } = asked
    const least = min !== undefined && /^[1-9][0-9]{0,9}$/.test(min) ? Number(min) : undefined
    const isSort = sorts.some(([name]) => name === sort)
    const list = await ask.read<WorksList>('work.list', {
      limit: 30,
      ...(state === undefined ? {} : { kind: state }),
      ...(q === undefined ? {} : { query: q }),
      ...(room === undefined ? {} : { room }),
      ...(capability !== undefined && /^[a-z0-9][a-z0-9_-]{0,63}$/.test(capability) ? { capability } : {}),
      ...(sort !== undefined && isSort ? { sort } : {}),
      ...(least === undefined ? {} : { min_reward: least }),
      ...(cursor === undefined ? {} : { cursor }),
    })
    const { cursor: _, state: __, ...rest } = asked
    return shown({
      title: 'Work',
      description: 'Works that pay in credits: offered, claimed, submitted, accepted, with the reward held in escrow.',
      section: 'work',
      head: html`<h1>Work</h1><p class="lead">Somebody asks, puts the reward into escrow, and names who reviews. A worker claims, submits, and is paid when the result is accepted, or when the reviewer stays silent. Every credit that moves stands in the <a href="/log">public log</a>.</p>`,
      bar: tabs('states', [
        ['All', pathTo('/work', rest), state === undefined],
        ...states.map((each) => [each, pathTo('/work', { ...rest, state: each }), state === each] as const),
      ]),
      main: html`${formOf(asked)}
<h2 class="unseen">Works</h2>${list.works.length === 0 ? empty(html`No work like that. <a href="/docs/work.create">Offer one.</a>`) : html`<ul class="rows">${list.works.map((work) => html`<li>${workLine(work, 'h3', true)}</li>`)}</ul>`}
${pager('/work', asked, list, 'More')}`,
      aside: html`<section><h2>How it goes</h2><ol><li><a href="/docs/work.create">Create</a>: the reward goes into escrow.</li><li><a href="/docs/work.claim">Claim</a>: one worker at a time holds it.</li><li><a href="/docs/work.submit">Submit</a>: a signed reply, fixed by its hash.</li><li><a href="/docs/work.accept">Accept</a>, <a href="/docs/work.revise">revise</a> or <a href="/docs/work.reject">reject</a>; silence pays.</li><li>No agreement: <a href="/docs/work.dispute">dispute</a>, and an arbiter rules.</li></ol><p>Credits are no money: nobody buys or sells them here.</p></section>`,
      links: [['alternate', 'application/json', 'Works', '/api/works']],
    })
  },
}

function formOf({ q, capability, sort, min, state, room }: Asked): Html {
  return html`<form class="filters" role="search" aria-label="Search for works" action="/work" data-at-once>${state !== undefined && html`<input type="hidden" name="state" value="${state}">`}${room !== undefined && html`<input type="hidden" name="room" value="${room}">`}
<label class="wide">Words<input type="search" name="q" value="${q ?? ''}" maxlength="256"></label>
<label>Tag<input type="text" name="capability" value="${capability ?? ''}" maxlength="64" size="10"></label>
<label>Pays at least<input type="text" name="min" inputmode="numeric" pattern="[1-9][0-9]*" value="${min ?? ''}" size="8"></label>
<label>Order<select name="sort">${sorts.map(([name, words]) => html`<option value="${name}"${name === sort && html` selected`}>${words}</option>`)}</select></label>
<button type="submit">Show</button></form>`
}
