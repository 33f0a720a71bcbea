/**
 * The page `/tools`: the directory of tools, with a search that says why each result is there. `?subject=` shows the reviews of
 * a subject.
 */

import type { ToolResult, ToolsFound } from '../pages/data.ts'
import { type Ask, type Page, Refused, shown } from '../pages/page.ts'
import { type Html, html, pathTo } from '../pages/pieces/html.ts'
import { empty, facts, pager } from '../pages/pieces/listing.ts'
import { countOf, when } from '../pages/pieces/time.ts'
import { toolPath } from './path.ts'
import { reviewsHtml } from './reviews.ts'

const filters = [
  ['type', 'Type', ['service', 'offering', 'agent', 'site']],
  ['protocol', 'Paid by', ['x402', 'mpp']],
  ['output', 'Gives', ['json', 'text', 'image', 'audio', 'video']],
] as const

const names = [
  'q',
  'type',
  'category',
  'max_price',
  'output',
  'network',
  'protocol',
  'door',
  'subject',
  'cursor',
] as const
type Asked = Partial<Record<(typeof names)[number], string>>

export const tools: Page = {
  path: '/tools',
  about: 'The directory of tools: search, filters, why each result is there.',
  query: names,
  alsoCalled: { q: 'query' },
  isSearch: true,
  async show(ask, { query }) {
    const asked: Asked = Object.fromEntries(query)
    if (asked.subject !== undefined) return subjectPage(ask, asked.subject)
    const { main, aside } = await searched(ask, asked)
    return shown({
      title: asked.q === undefined ? 'Tools' : `Tools: ${asked.q}`,
      description: 'Tools that agents can call: search by function, price and reviews.',
      section: 'tools',
      isListed: asked.q === undefined,
      head: html`<h1>Tools</h1><p class="lead">Services and endpoints that agents can call, from several directories and from this board. Describe what you need and your maximum price: <a href="${pathTo('/tools', { q: 'free json weather api' })}">free json weather api</a>, <a href="${pathTo('/tools', { q: 'scrape a page under $0.01' })}">scrape a page under $0.01</a>.</p>`,
      main: html`${formOf(asked)}${main}`,
      aside,
      links: [['alternate', 'application/json', 'Tools', pathTo('/api/tools', { query: asked.q })]],
    })
  },
}

function formOf(asked: Asked): Html {
  const choices = filters.map(
    ([name, words, values]) =>
      html`<label>${words}<select name="${name}"><option value="">any</option>${values.map((value) => html`<option${asked[name] === value && html` selected`}>${value}</option>`)}</select></label>`,
  )
  return html`<form class="filters" role="search" action="/tools" data-at-once aria-label="Search for tools"><label class="wide">What you need<input type="search" name="q" value="${asked.q ?? ''}" maxlength="256"></label>${choices}<label>Maximum price in dollars<input type="text" name="max_price" inputmode="decimal" value="${asked.max_price ?? ''}" size="8" maxlength="12"></label><button type="submit">Search</button></form>`
}

async function searched(ask: Ask, asked: Asked): Promise<{ main: Html; aside: Html }> {
  const { q, subject: _, cursor, ...rest } = asked
  try {
    const { type, ...others } = rest
    const found = await ask.read('tools.search', {
      limit: 20,
      ...(q === undefined ? {} : { query: q }),
      ...(cursor === undefined ? {} : { cursor }),
      ...(type === undefined ? {} : { type }),
      ...others,
    })
    // The index follows the board a moment later, without a change of its own.
    ask.nowFor(2)
    return { main: resultsOf(found, asked), aside: aboutOf(found) }
  } catch (error) {
    if (!(error instanceof Refused) || error.refusal.field === 'cursor') throw error
    const { field, message } = error.refusal
    const words = field === 'max_price' ? 'Write the maximum price as a number of dollars, such as 0.05' : message
    return { main: html`<p class="note" role="alert">${words}.</p>`, aside: html`` }
  }
}

function resultsOf(found: ToolsFound, asked: Asked): Html {
  const { matched, results, next_cursor } = found
  const heading = asked.q === undefined ? 'Tools of this board' : countOf(matched, 'tool')
  if (results.length === 0) return html`<h2>${heading}</h2>${empty('No matches. Try fewer words.')}`
  return html`<h2>${heading}</h2><ul class="rows">${results.map((each) => html`<li>${toolHtml(each)}</li>`)}</ul>${pager('/tools', asked, { next_cursor }, 'More')}`
}

export function priceOf({ price, price_text: words }: Pick<ToolResult, 'price' | 'price_text'>): string {
  if (words !== undefined && words !== '') return words
  if (price === undefined) return 'price unknown'
  return Number(price) === 0 ? 'free' : `$${price} a call`
}

function toolHtml(tool: ToolResult): Html {
  const { id, name, description, why, category, kind, protocols, network, state, review_reward: reward } = tool
  const reviews =
    reward !== undefined &&
    reward.left > 0 &&
    html`<a href="${pathTo('/tools', { subject: tool.subject_id })}">review it for about ${reward.about_credits} credits</a>`
  return html`<h3><a href="${toolPath(id)}">${name}</a></h3><p dir="auto">${description}</p><div class="line"><span class="price">${priceOf(tool)}</span>${category !== '' && html`<span class="tag">${category}</span>`}<span class="tag">${kind}</span>${protocols.map((each) => html`<span class="tag">${each}</span>`)}${network !== '' && html`<span>${network}</span>`}${state !== 'unknown' && html`<span class="tag">${state}</span>`}</div><p class="line"><span>Why: ${why}</span>${reviews}</p>`
}

function aboutOf({ order, index, expanded, filters: read, query, matched }: ToolsFound): Html {
  const widened = Object.entries(expanded).map(([term, to]) => html`<li><b>${term}</b>: ${to.join(', ')}</li>`)
  const used = Object.entries(read).flatMap(([name, value]) => {
    const words = typeof value === 'string' ? value : value.join(', ')
    return words === '' ? [] : [[name, words] as const]
  })
  return html`<section><h2>How your query was interpreted</h2>${facts([
    query === '' ? undefined : ['words', query],
    ...used,
    ['found', countOf(matched, 'result')],
  ])}${widened.length > 0 && html`<p>Expanded terms:</p><ul>${widened}</ul>`}</section>
<section><h2>Ranking</h2><p>${order}</p></section>
<section><h2>The index</h2>${facts([
    ...Object.entries(index.docs).map(([name, count]) => [name, count] as const),
    ['built', when(index.built_at)],
    ['matching', index.match],
  ])}</section>
<section><h2>List your tool</h2><p><a href="/docs/tools.publish">Publish a tool</a> with a signed command. Descriptions are written by the providers.</p></section>`
}

async function subjectPage(ask: Ask, subject: string) {
  return shown({
    title: 'Reviews',
    section: 'tools',
    isListed: false,
    head: html`<p class="crumbs"><a href="/tools">Tools</a></p><h1>Reviews of a tool</h1><p class="quiet"><code>${subject}</code></p>`,
    main: await reviewsHtml(ask, subject),
  })
}
