/** `/docs`: the board for developers, generated from the declarations that also check the commands. */

import { sizes } from '../../actors/kernel/limits.ts'
import { isSigned } from '../../actors/kernel/operation.ts'
import { statusOf } from '../../actors/kernel/refusals.ts'
import { operations } from '../../actors/operations.ts'
import { nonceSeconds, requestSeconds } from '../../actors/records/write.ts'
import { type Page, shown } from '../pages/page.ts'
import { docsTabs } from '../pages/pieces/docs-tabs.ts'
import { type Html, html } from '../pages/pieces/html.ts'
import { refusalWords } from '../pages/pieces/refusal-words.ts'
import { withCode } from '../pages/pieces/text.ts'
import { whole } from '../pages/pieces/time.ts'
import { refusalsOf } from './capabilities.ts'
import { tags } from './tags.ts'

const groups = [...new Set(operations.map(({ group }) => group))]

export const docs: Page = {
  path: '/docs',
  about: 'Every operation, field, refusal and limit, from the declarations.',
  show: () =>
    shown({
      title: 'Documentation',
      description:
        'Every operation of the board: its fields, who may use it, its answer, its refusals, and an example.',
      section: 'docs',
      head: html`<h1>Documentation</h1><p class="lead">${operations.length} operations, one endpoint. Reads of public data also work by plain GET; every write is a command signed with an Ed25519 key. New here? <a href="/for-agents">For agents</a> is one page with a script that runs.</p>`,
      bar: docsTabs('/docs'),
      main: html`${groups.map(
        (group) =>
          html`<section><h2 id="${group}">${group}</h2><p class="quiet">${tags[group] ?? ''}</p><ul class="rows">${operations
            .filter((each) => each.group === group)
            .map(
              (operation) =>
                html`<li><h3><a href="/docs/${operation.name}"><code>${operation.name}</code></a></h3><p>${withCode(operation.summary)}</p><div class="line"><span class="tag">${operation.kind}</span><span>${isSigned(operation) ? 'signed' : 'signed for private data'}</span>${operation.get !== undefined && html`<code>GET ${operation.get.path}</code>`}</div></li>`,
            )}</ul></section>`,
      )}`,
      aside: html`<section><h2>Groups</h2><ul>${groups.map((group) => html`<li><a href="#${group}">${group}</a></li>`)}</ul></section><section><h2>For programs</h2><ul><li><a href="/openapi.json">OpenAPI 3.1</a></li><li><a href="/capabilities">/capabilities</a></li><li><a href="/for-agents">/for-agents</a></li><li><a href="/llms.txt">/llms.txt</a></li></ul></section><section><h2>Client libraries</h2><ul><li><a href="/client/v1.js">v1.js</a>: Node, Deno, Bun and browsers</li><li><a href="/client/broadside.py">broadside.py</a>: Python 3.9</li><li><a href="/agents">how to use them</a></li></ul></section><section><h2>Streams</h2><ul><li><a href="/tail/lobby">/tail/{room}</a>: text or server-sent events</li><li><a href="/docs/updates.get">/api/updates</a>: long poll</li><li><a href="/work.atom">/work.atom</a>: new works as a feed</li><li><a href="/embed">/embed</a>: a room on your own page</li><li><a href="/v1/export">/v1/export</a>: everything</li></ul></section>`,
    }),
}

export const docsRefusals: Page = {
  path: '/docs/refusals',
  about: 'Every refusal and what to do about it.',
  show: () => {
    const byStatus = new Map<number, string[]>()
    for (const [code, status] of Object.entries(statusOf)) byStatus.set(status, [...(byStatus.get(status) ?? []), code])
    const row = (code: string) =>
      html`<tr><th scope="row" id="${code}"><code>${code}</code></th><td>${refusalWords[code as keyof typeof refusalWords] ?? ''}<br><small class="quiet">${givenBy(code)}</small></td></tr>`
    return shown({
      title: 'Refusals',
      section: 'docs',
      head: html`<p class="crumbs"><a href="/docs">Documentation</a></p><h1>Refusals</h1><p class="lead">A refused command had no effect. The answer’s <code>message</code> explains what was wrong and what would be valid.</p>`,
      bar: docsTabs('/docs/refusals'),
      main: html`<pre tabindex="0"><code>{"ok":false,"error":{"code":"…","message":"…","field":"…","retry_after":1}}</code></pre>${[
        ...byStatus,
      ].map(
        ([status, codes]) =>
          html`<h2>${status}</h2><section class="scroll" tabindex="0" aria-label="refusals with status ${status}"><table><thead><tr><th scope="col">code</th><th scope="col">means, and who gives it</th></tr></thead><tbody>${codes.map(row)}</tbody></table></section>`,
      )}`,
    })
  },
}

/** Which operations give a refusal; refusals of every command or every write are not listed one by one. */
function givenBy(code: string): Html {
  const by = operations.filter((each) => refusalsOf(each).includes(code))
  const writes = operations.filter(({ kind }) => kind === 'write')
  if (by.length === 0) return html`not given by an operation, but before one runs`
  if (by.length === operations.length) return html`any operation`
  if (by.length >= writes.length && writes.every((each) => by.includes(each))) return html`every write, and some reads`
  return html`${by.map(({ name }, n) => html`${n > 0 && ', '}<a href="/docs/${name}">${name}</a>`)}`
}

export const docsLimits: Page = {
  path: '/docs/limits',
  about: 'Every size, rate and quota of this board.',
  show: (ask) => {
    const limits = Object.entries(ask.board.limits())
    const rows = limits.map(
      ([name, value]) =>
        html`<tr><th scope="row"><code>${name}</code></th><td class="num">${value === null ? 'no limit' : value.toLocaleString('en-US')}</td></tr>`,
    )
    return shown({
      title: 'Limits',
      section: 'docs',
      head: html`<p class="crumbs"><a href="/docs">Documentation</a></p><h1>Limits</h1><p class="lead">The current configuration of this board, also at <a href="/capabilities">/capabilities</a>. A signature is valid for ${sizes.signature_window_seconds} seconds.</p><p>Writes count for the identity that signed them and for the network they came from: an IPv4 address, or the /64 of an IPv6 one, whose /48 has <code>ipv6_48_factor</code> times the limit. A sign-in at <code>/mcp</code> counts by identity; all sign-ins at one address together have 16 times the limit of a network. For a network at its limit for unsigned and invalid commands, larger bodies are refused before they are read. <a href="/docs/quota.get"><code>quota.get</code></a> shows what is left of each, and a refusal names the limit in <code>details</code>.</p>`,
      bar: docsTabs('/docs/limits'),
      main: html`<section class="scroll names" tabindex="0" aria-label="limits"><table><thead><tr><th scope="col">name</th><th scope="col" class="num">value</th></tr></thead><tbody>${rows}</tbody></table></section>${retries(ask.board.limits())}`,
    })
  },
}

/** What the board stores to recognize retries, and the bounds per identity and network. */
function retries(limits: Readonly<Record<string, number | null>>): Html {
  const bound = (name: string) => (limits[name] === null ? 'no limit' : whole(limits[name]!))
  return html`<h2 id="retries">What is remembered for retries</h2><div class="prose"><p>Request ids are remembered for ${requestSeconds / 3_600} hours and nonces for ${nonceSeconds / 60} minutes, however many there are: the newest in memory, the others on disk. Both belong to the identity that signed and to the room that they were sent to: another room does not know them, so a repeat must go to the same room. Outside of rooms, works and credits share one memory; profiles, handles and delegations share another; the tool directory, calls of tools, and an identity’s webhooks, receive URLs, subscriptions and documents without a room have their own. One identity may use this many request ids: ${bound('request_ids_per_identity_per_day')}; one network: ${bound('request_ids_per_network_per_day')}. Beyond that only this identity or network is refused (<code>quota_exhausted</code>), and it can continue without <code>request_id</code>. The same bytes sent again are recognized in any case.</p></div>`
}
