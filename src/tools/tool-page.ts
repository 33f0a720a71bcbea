/**
 * The page `/tools/t_…` of one tool: its own description, its reviews and probes, its input, and how to call it. A path with
 * the tool's id, as in older links, redirects there.
 */

import { refusal } from '../../actors/kernel/refusals.ts'
import type { Json } from '../format/plain-schema.ts'
import { ownToolById } from '../own-tools/descriptors.ts'
import type { Tool } from '../pages/data.ts'
import { Moved, type Page, Refused, shown } from '../pages/page.ts'
import { type Html, html, linkTo } from '../pages/pieces/html.ts'
import { facts } from '../pages/pieces/listing.ts'
import { person } from '../pages/pieces/person.ts'
import { schemaTable } from '../pages/pieces/schema.ts'
import { excerpt, textHtml } from '../pages/pieces/text.ts'
import { when } from '../pages/pieces/time.ts'
import { priceOf } from './list-page.ts'
import { isPathKey, toolPath } from './path.ts'
import { reviewsHtml } from './reviews.ts'

export const tool: Page = {
  path: '/tools/{id...}',
  about: 'One tool: listing, reviews, input, how to call it.',
  async show(ask, { parameters }) {
    const target = decoded(parameters.id!)
    const found = await ask.read('tools.get', { target })
    const { tool: it, index, probe } = found
    if (!isPathKey(target) || it.id === target) throw new Moved(toolPath(it.id))
    const owner = it.owner === undefined ? undefined : await ask.find('identity.get', { target: it.owner })
    return shown({
      title: it.name,
      description: excerpt(it.description, 200),
      section: 'tools',
      isListed: !index.spam,
      head: html`<p class="crumbs"><a href="/tools">Tools</a></p><h1 dir="auto">${it.name}</h1><div class="line"><span class="price">${priceOf(it)}</span><span class="tag">${it.type}</span><span class="tag">${it.kind}</span>${it.category !== '' && html`<span class="tag">${it.category}</span>`}<span class="tag${it.callable === 'callable' && ' good'}">${it.callable}</span>${it.state !== 'unknown' && html`<span class="tag">${it.state}</span>`}</div>`,
      main: html`<h2 class="unseen">Description</h2><p class="text" dir="auto">${textHtml(it.description)}</p><p class="quiet">${offeredBy(it)}</p>
<h2>Input</h2>${schemaOf(it.input_schema, 'input of the tool')}
${it.output_schema !== undefined && html`<h2>Output</h2>${schemaOf(it.output_schema, 'output of the tool')}`}
<h2>Call it</h2>${callOf(it)}
<h2>Reviews</h2>${await reviewsHtml(ask, it.subject_id)}<div id="review" data-subject="${it.subject_id}"></div>`,
      scripts: ['tool.js'],
      aside: html`<section><h2>Listing</h2>${facts([
        ['id', html`<code>${it.id}</code>`],
        it.link === undefined ? undefined : ['address', linkTo(it.link, it.link)],
        it.method === undefined ? undefined : ['method', it.method],
        it.protocols.length === 0 ? undefined : ['payment', it.protocols.join(', ')],
        it.network === '' ? undefined : ['network', it.network],
        it.output === undefined ? undefined : ['gives', it.output],
        it.owner === undefined ? undefined : ['owner', person(owner?.identity ?? { id: it.owner })],
        it.source === undefined ? undefined : ['from', it.source],
        it.service === undefined ? undefined : ['part of', html`<a href="${toolPath(it.service)}">${it.service}</a>`],
        ['listed', when(it.created_at)],
      ])}${it.doors.length > 0 && html`<p class="line">${it.doors.map(({ door, source }) => html`<span class="tag" title="${source}">${door}</span>`)}</p>`}</section>
<section><h2>In the index</h2><p>${index.listed ? html`<span class="tag good">listed</span>` : html`<span class="tag bad">not listed</span>`} ${index.why}</p></section>
${probe !== undefined && html`<section><h2>Latest probe</h2><p>${when(probe.at)}: <b>${probe.verdict}</b></p>${probe.mismatch.length > 0 && html`<ul>${probe.mismatch.map((each) => html`<li>${each}</li>`)}</ul>`}</section>`}
<section><h2>Other forms</h2><ul><li><a href="/api/tool?id=${encodeURIComponent(it.id)}">as JSON</a></li>${it.openapi_url !== undefined && html`<li>${linkTo(it.openapi_url, 'its OpenAPI')}</li>`}</ul></section>`,
    })
  },
}

function offeredBy({ kind, verified }: Tool): string {
  if (kind === 'builtin') return 'A tool of this board itself.'
  return verified
    ? 'Written by its provider, whose host confirms them as its owner.'
    : 'Written by its provider; ownership is not verified.'
}

function decoded(id: string): string {
  try {
    return decodeURIComponent(id)
  } catch {
    throw new Refused(refusal('invalid_field', 'the id in the address is not percent-encoded UTF-8', 'id'))
  }
}

function schemaOf(schema: unknown, caption: string): Html {
  if (typeof schema !== 'object' || schema === null) return html`<p class="quiet">Not stated.</p>`
  const isObject = (schema as { type?: unknown }).type === 'object'
  return isObject && isPlain(schema as Json)
    ? schemaTable(schema as Json, caption)
    : html`<pre tabindex="0"><code>${JSON.stringify(schema, undefined, 1).slice(0, 20_000)}</code></pre>`
}

/** An untrusted schema may hold anything where words are expected: only a plain one becomes a table. */
function isPlain(schema: Json, depth = 0): boolean {
  if (depth > 6) return false
  return Object.entries(schema).every(([key, value]) => {
    if (key === 'properties')
      return isRecord(value) && Object.values(value).every((each) => isRecord(each) && isPlain(each, depth + 1))
    if (key === 'items') return isRecord(value) && isPlain(value, depth + 1)
    if (key === 'anyOf')
      return Array.isArray(value) && value.every((each) => isRecord(each) && isPlain(each, depth + 1))
    if (key === 'required' || key === 'enum')
      return Array.isArray(value) && value.every((each) => typeof each === 'string' || typeof each === 'number')
    if (['title', 'description', 'pattern', 'type'].includes(key)) return typeof value === 'string'
    if (/^(min|max)/.test(key)) return typeof value === 'number'
    return true
  })
}

function isRecord(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function callOf({ id, kind, callable }: Tool): Html {
  if (kind === 'agent' || kind === 'site') return html`<p>This tool cannot be called from here: use its address.</p>`
  const isPaidHere = callable !== 'listed only'
  const data = JSON.stringify({ schema: 1, body: ownToolById.get(id)?.example.input ?? {} })
  const command = JSON.stringify({ operation: 'tools.call', target: id, data }, undefined, 1)
  const how = isPaidHere
    ? html`Sign this with your key; a call from the free daily allowance needs no wallet.`
    : html`This board does not pay for it: to use it, call it yourself at the address of its listing, and pay its price. Signed with your key, this command calls it through the board without payment and returns its answer, such as its price; it uses one of your daily calls.`
  return html`<p>${how} See <a href="/docs/tools.call">tools.call</a>.</p><pre tabindex="0"><code>${command}</code></pre><p><button type="button" hidden data-copy="${command}">Copy the command</button></p>`
}
