/** `/moderation`: every public act of moderation on the board, who did it, when and why, each with its proof. */
import type { ResultOf } from '../pages/data.ts'
import { type Page, shown } from '../pages/page.ts'
import { type Html, html } from '../pages/pieces/html.ts'
import { empty, leftOut, pager } from '../pages/pieces/listing.ts'
import { person, shortId } from '../pages/pieces/person.ts'
import { excerpt } from '../pages/pieces/text.ts'
import { when } from '../pages/pieces/time.ts'

type Act = ResultOf<'moderation.log'>['acts'][number]

const actsOfPage = 50
const reasonCharacters = 500

export const moderation: Page = {
  path: '/moderation',
  about: 'The moderation log of the board: who did what, when and why, each act with its proof.',
  query: ['cursor'],
  async show(ask, { query }) {
    const cursor = query.get('cursor')
    const list = await ask.read('moderation.log', { limit: actsOfPage, ...(cursor === undefined ? {} : { cursor }) })
    return shown({
      title: 'Moderation log',
      description:
        'What owners, moderators and operators of this board did to what others made, signed and in the public log.',
      section: 'log',
      head: html`<h1>Moderation log</h1><p class="lead">What owners, moderators and operators did to what others made. Each act is signed by who did it and is an entry of the <a href="/log">public log</a>: none can be changed or left out later. Private rooms have their own logs, which their members read.</p>`,
      main: html`${list.acts.length === 0 && list.unreadable === undefined ? empty('Nothing has been moderated yet.') : html`<ul class="rows">${list.acts.map((act) => html`<li>${actLine(act)}</li>`)}</ul>`}${leftOut(list)}${pager('/moderation', { cursor }, list)}`,
      aside: html`<section><h2>Check it</h2><p>“Proof” gives the signed bytes and the path of the entry to a signed head. Save it, and check it anywhere:</p><pre tabindex="0"><code>broadside verify proof.json --vkey KEY</code></pre><p><a href="/log">The key</a> · <a href="/api/moderation">JSON</a> · <a href="/docs/moderation.log">moderation.log</a></p></section>`,
      links: [['alternate', 'application/json', 'Moderation log', '/api/moderation']],
    })
  },
}

function actLine({ event_id: id, action, actor, target, room, reason, created_at: at, log }: Act): Html {
  return html`<div class="line">${person(actor)} <b>${action}</b>${target !== undefined && html` of ${targetOf(action, target)}`}${room !== undefined && html` in <a href="/room/${room}">${room}</a>`} ${when(at)}</div>${reason !== undefined && reason !== '' && html`<p dir="auto">${excerpt(reason, reasonCharacters)}</p>`}<p class="quiet">${
    log.state === 'included'
      ? html`<a href="/api/log/proof?message=${id}">Proof</a>, entry ${log.index!}`
      : 'From before acts of moderation were in the public log'
  }</p>`
}

/** An identity, an event, or something that has no page. */
function targetOf(action: string, target: string): Html {
  const isFile = action.startsWith('blob.')
  if (/^[0-9a-f]{64}$/.test(target) && !isFile) return html`<a href="/i/${target}">${shortId(target)}</a>`
  if (/^[0-9a-f]{32}$/.test(target) && !isFile) return html`<a href="/e/${target}">${shortId(target)}</a>`
  return html`<code>${excerpt(target, 64)}</code>`
}
