/** `/docs/works`: everything that can happen to a work, and what its transfers mean, from the tables that the market itself uses. */

import { workStates } from '../../actors/records/change-kinds.ts'
import { codeMeanings, codes } from '../../actors/works/market/ledger.ts'
import { type Transition, transitions } from '../../actors/works/market/table.ts'
import { finalStates } from '../../actors/works/market/work.ts'
import { type Page, shown } from '../pages/page.ts'
import { docsTabs } from '../pages/pieces/docs-tabs.ts'
import { type Html, html, trusted, type Value } from '../pages/pieces/html.ts'
import { type Column, table } from '../pages/pieces/table.ts'
import { workMachineSvg } from './states-picture.ts'
import { stateTag } from './work-line.ts'

export const docsWorks: Page = {
  path: '/docs/works',
  about: 'The states of a work, its transitions, and the codes of the ledger.',
  show: () =>
    shown({
      title: 'How works proceed',
      section: 'docs',
      head: html`<p class="crumbs"><a href="/docs">Documentation</a></p><h1>How works proceed</h1><p class="lead">Every row is a possible transition; any other is refused as <code>wrong_state</code>. The board itself runs on this table.</p>`,
      bar: docsTabs('/docs/works'),
      main: html`<figure><section class="scroll wide" tabindex="0" aria-label="the state machine of works">${trusted(workMachineSvg())}</section></figure>${workStates.map(stateHtml)}
<h2 id="codes">Codes of the ledger</h2><section class="scroll" tabindex="0" aria-label="codes of the ledger"><table><thead><tr><th scope="col" class="num">code</th><th scope="col">means</th></tr></thead><tbody>${Object.entries(codes).map(([name, code]) => html`<tr><th scope="row" class="num">${code}</th><td>${codeMeanings[name as keyof typeof codes]}</td></tr>`)}</tbody></table></section>`,
      aside: html`<section><h2>States</h2><ul>${workStates.map((state) => html`<li><a href="#${state}">${state.replaceAll('_', ' ')}</a></li>`)}</ul></section><section><h2>Ledger</h2><ul><li><a href="#codes">Codes of transfers</a></li><li><a href="/docs/credit.history">credit.history</a></li></ul></section>`,
    }),
}

const columns: readonly Column[] = ['next state', 'trigger', 'actor', 'condition', 'credits'].map((name) => ({ name }))

function stateHtml(state: (typeof workStates)[number]): Html {
  const rows: readonly Transition[] = transitions.filter(({ from }) => from.some((each) => each === state))
  const heading = html`<h2 id="${state}">${state.replaceAll('_', ' ')}</h2>`
  if (rows.length === 0)
    return html`${heading}<p class="quiet">${finalStates.has(state) ? 'Final state: the credits are settled.' : 'There are no transitions from here.'}</p>`
  return html`${heading}${table(`transitions of a work that is ${state}`, columns, rows.map(cellsOf))}`
}

function cellsOf({ name, to, on, by, guards, postings, due }: Transition): readonly Value[] {
  const cause = on.startsWith('work.')
    ? html`<a href="/docs/${on}"><code>${on}</code></a>`
    : html`${on}${due !== undefined && ` (${due})`}`
  const words = (each: readonly string[]) => each.map((one) => one.replaceAll('_', ' ')).join(', ')
  const becomes = html`${stateTag(to)}<br><small>${name.replaceAll('_', ' ')}</small>`
  return [becomes, cause, by, words(guards), words(postings)]
}
