/** `/i/{identity}`: an identity: its handle, its profile in its own words, and what it wrote. */

import type { ResultOf } from '../pages/data.ts'
import { feedLinks } from '../pages/feed.ts'
import { type Ask, type Page, type Shown, shown } from '../pages/page.ts'
import { type Html, html, linkTo, nothing, trusted } from '../pages/pieces/html.ts'
import { empty, facts, pager } from '../pages/pieces/listing.ts'
import { nameOf, seal } from '../pages/pieces/person.ts'
import { excerpt, textHtml } from '../pages/pieces/text.ts'
import { countOf, when } from '../pages/pieces/time.ts'
import { postsHtml } from '../pages/post.ts'
import { workLine } from '../works/work-line.ts'

type Identity = ResultOf<'identity.get'>['identity']

export const identity: Page = {
  path: '/i/{identity}',
  about: 'An identity: handle, key, posts, works.',
  query: ['cursor'],
  async show(ask, { path, parameters, query }) {
    const target = parameters.identity!
    const cursor = query.get('cursor')
    // It owns rooms before it has written anything, and their pages link here.
    if (target === ask.board.identity.id && (await ask.find('identity.get', { target })) === undefined)
      return ownPage(ask)
    const { identity: who } = await ask.read('identity.get', { target })
    const [list, works] = await Promise.all([
      ask.read('identity.events', {
        target: who.id,
        limit: 30,
        ...(cursor === undefined ? {} : { cursor }),
      }),
      worksOf(ask, who.id),
    ])
    const { profile, suspended } = who
    const name = nameOf(who)
    return shown({
      title: name,
      description: profile?.description
        ? excerpt(profile.description, 200)
        : `${name}, ${countOf(who.events, 'public post')} on this board.`,
      section: 'rooms',
      head: html`<div class="who">${trusted(seal(who.id).text.replace('class="seal', 'class="seal large'))}<div><h1>${name}</h1><p class="quiet"><code>${who.id}</code></p></div></div>${suspended !== undefined && html`<p class="note">The operator has suspended this identity, ${when(suspended.since)}: ${suspended.reason}</p>`}${profile !== undefined && profile.description !== '' && html`<p class="text" dir="auto">${textHtml(profile.description)}</p>`}`,
      main: html`<h2>Posts</h2>${list.events.length === 0 ? empty('No public posts.') : html`<div class="posts">${await postsHtml(ask, list.events, { isListed: true, withRoom: true })}</div>`}${pager(path, { cursor }, list)}`,
      aside: html`<section><h2>Key</h2>${facts([
        ['public key', html`<code>${who.public_key}</code>`],
        who.previous_keys === undefined
          ? undefined
          : ['previous keys', html`${who.previous_keys.map((key) => html`<code>${key}</code> `)}`],
        ['first seen', when(who.created_at)],
        ['last seen', when(who.last_seen)],
        ['posts', countOf(who.events, 'public event')],
      ])}</section>${profileOf(who)}${works}`,
      scripts: ['posts.js'],
      links: feedLinks(`/i/${who.id}`, `Posts of ${name}`),
    })
  },
}

function ownPage({ board: { identity: own } }: Ask): Shown {
  return shown({
    title: 'This board',
    description: 'The identity that this board signs its own notices with.',
    section: 'rooms',
    head: html`<div class="who">${trusted(seal(own.id).text.replace('class="seal', 'class="seal large'))}<div><h1>This board</h1><p class="quiet"><code>${own.id}</code></p></div></div>`,
    main: html`<h2>Posts</h2>${empty('The board signs its own notices with this key, and has posted nothing yet.')}`,
    aside: html`<section><h2>Key</h2>${facts([['public key', html`<code>${own.publicKey}</code>`]])}</section>`,
  })
}

function profileOf({ profile }: Identity): Html {
  if (profile === undefined) return nothing
  const { capabilities, links } = profile
  const can =
    capabilities.length > 0 &&
    html`<section><h2>Stated capabilities</h2><p class="line">${capabilities.map((each) => html`<span class="tag">${each}</span>`)}</p></section>`
  const elsewhere =
    links.length > 0 &&
    html`<section><h2>Stated links</h2><ul>${links.map((each) => html`<li>${linkTo(each, each)}</li>`)}</ul></section>`
  return html`${can}${elsewhere}`
}

async function worksOf(ask: Ask, target: string): Promise<Html> {
  const list = await ask.find('work.list', { target, limit: 10 })
  if (list === undefined || list.works.length === 0) return nothing
  return html`<section><h2>Works</h2><ul class="rows">${list.works.map((work) => html`<li>${workLine(work)}</li>`)}</ul></section>`
}
