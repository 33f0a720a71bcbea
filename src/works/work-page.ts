/** `/work/{id}`: one work: its state, history and payments, and what its result is bound to. */
import { codeMeanings, codes } from '../../actors/works/market/ledger.ts'
import type { Standing, Transition, Work } from '../pages/data.ts'
import { type Page, shown } from '../pages/page.ts'
import { type Html, html, joined, nothing } from '../pages/pieces/html.ts'
import { facts, leftOut } from '../pages/pieces/listing.ts'
import { person, shortId } from '../pages/pieces/person.ts'
import { table } from '../pages/pieces/table.ts'
import { excerpt, textHtml } from '../pages/pieces/text.ts'
import { when, whole } from '../pages/pieces/time.ts'
import { postHtml } from '../pages/post.ts'
import { moneyPlot } from './credit-flow-picture.ts'
import { type Move, movesOf } from './transfers.ts'
import { credits, isOver, stateTag } from './work-line.ts'

export const work: Page = {
  path: '/work/{id}',
  about: 'One work: its state as a timeline, its money, its result.',
  async show(ask, { parameters }) {
    const event_id = parameters.id!
    const { work: it } = await ask.read('work.get', { event_id })
    const [history, request, result] = await Promise.all([
      ask.read('work.history', { event_id, limit: 200 }),
      ask.find('event.get', { event_id: it.id }),
      it.result_id === undefined ? undefined : ask.find('event.get', { event_id: it.result_id }),
    ])
    const { transitions, has_more: hasMore } = history
    const moves = movesOf(transitions)
    // If a transition is missing, the amounts moved by the others do not add up.
    const missing = leftOut(history)
    const [shownRequest, shownResult] = await Promise.all([
      request === undefined ? undefined : postHtml(ask, request.event),
      result === undefined ? undefined : postHtml(ask, result.event),
    ])
    return shown({
      title: it.title,
      description: `${it.state}: ${whole(it.reward.amount)} credits. ${excerpt(it.request.text, 160)}`,
      section: 'work',
      scripts: ['work.js'],
      head: html`<p class="crumbs"><a href="/work">Work</a> / <a href="/room/${it.room}">${it.room}</a></p><h1 dir="auto">${it.title}</h1><div class="line"><span>${credits(it.reward.amount)}</span>${stateTag(it.state)}${it.simulated && html`<span class="tag">practice: its credits are simulated</span>`}${it.capabilities.map((each) => html`<a class="tag" href="/work?capability=${each}">${each}</a>`)}</div>`,
      main: html`<h2>The request</h2>${shownRequest ?? html`<p class="text" dir="auto">${textHtml(it.request.text)}</p>`}<p class="line"><a href="/e/${it.id}">its thread</a></p>
${resultOf(it, shownResult)}<div id="work-acts" data-work="${it.id}"></div>
<h2>Credits</h2>${missing === false && moneyPlot(it, moves.flat())}${movesTable(transitions, moves, namesIn(it, transitions))}
<h2>History</h2><ol class="timeline">${joined(transitions.map((each, n) => transitionHtml(each, moves[n]!)))}</ol>${missing}${hasMore === true && html`<p><a href="/api/work/${it.id}/history">The full history as JSON</a></p>`}`,
      aside: html`<section><h2>Who</h2>${facts([
        ['requested by', html`${person(it.requester)}${recordOf(it.requester_record)}`],
        it.worker === undefined ? undefined : ['done by', html`${person(it.worker)}${recordOf(it.worker_record)}`],
        ['reviewed by', person(it.reviewer)],
        [
          'may be claimed by',
          it.eligibility === 'first_work' ? 'identities that have had no result accepted' : 'anyone',
        ],
      ])}</section><section><h2>When</h2>${facts([
        ['offered', when(it.created_at)],
        isOver(it) ? undefined : ['deadline', when(it.deadline)],
        it.claim_expires_at === 0 || isOver(it) ? undefined : ['claim expires', when(it.claim_expires_at)],
        it.review_due === undefined ? undefined : ['accepted automatically', when(it.review_due)],
        it.dispute_due === undefined ? undefined : ['dispute until', when(it.dispute_due)],
        it.arbitration_due === undefined ? undefined : ['ruled by', when(it.arbitration_due)],
        it.confirm_due === undefined ? undefined : ['confirm until', when(it.confirm_due)],
        ['last change', when(it.updated_at)],
      ])}</section><section><h2>Other forms</h2><ul><li><a href="/api/work/${it.id}">as JSON</a></li><li><a href="/api/work/${it.id}/history">its history, with signatures</a></li></ul></section>`,
    })
  },
}

function transitionHtml({ operation, actor, at, state, reason }: Transition, moves: readonly Move[]): Html {
  const by = actor === undefined ? html`<span>automatic</span>` : person(actor)
  const moved =
    moves.length > 0 &&
    html`<p class="quiet">${moves.map(({ amount, code }, n) => html`${n > 0 && '; '}${whole(amount)}: ${meaningOf(code)}`)}</p>`
  return html`<li><h3 class="line">${stateTag(state)}<code>${operation}</code>${by}<span>${when(at)}</span></h3>${reason !== undefined && reason !== '' && html`<p dir="auto">${reason}</p>`}${moved}</li>`
}

const meanings: ReadonlyMap<number, string> = new Map(
  Object.entries(codes).map(([name, code]) => [code, codeMeanings[name as keyof typeof codes]]),
)

function meaningOf(code: number): string {
  return meanings.get(code) ?? `code ${code}`
}

/** Handles of the people involved in the work, by identity id. */
function namesIn(it: Work, transitions: readonly Transition[]): ReadonlyMap<string, string> {
  const people = [it.requester, it.reviewer, it.worker, ...transitions.map(({ actor }) => actor)]
  return new Map(people.flatMap((each) => (each?.handle === undefined ? [] : [[each.id, each.handle]])))
}

function account(name: string, names: ReadonlyMap<string, string>): Html {
  const id = /^user:([0-9a-f]{64})$/.exec(name)?.[1]
  if (id === undefined) return html`${name}`
  const handle = names.get(id)
  return html`<a href="/i/${id}" title="identity ${id}">${handle === undefined ? html`<code>${shortId(id)}</code>` : `@${handle}`}</a>`
}

function movesTable(
  transitions: readonly Transition[],
  moves: readonly (readonly Move[])[],
  people: ReadonlyMap<string, string>,
): Html {
  const rows = transitions.flatMap(({ at }, n) =>
    moves[n]!.map(({ code, from, to, amount }) => [
      when(at),
      meaningOf(code),
      account(from, people),
      account(to, people),
      whole(amount),
    ]),
  )
  if (rows.length === 0) return nothing
  const names = ['when', 'what', 'from', 'to'].map((name) => ({ name }))
  return table('transfers', [...names, { name: 'credits', isNumber: true }], rows, false)
}

function resultOf(it: Work, shownResult: Html | undefined): Html {
  if (it.result_id === undefined) return nothing
  const changed =
    it.result_changed_since_submit === true &&
    html`<p class="note">The result was changed after it was submitted: its hash no longer matches.</p>`
  const hash = it.result_sha256 !== undefined && html`<p>SHA-256 as submitted: <code>${it.result_sha256}</code></p>`
  const missing =
    !it.result_available &&
    html`<p class="note">The result is not readable now. The hash of the submission remains.</p>`
  return html`<h2>The result</h2>${changed}${missing}${shownResult}${hash}`
}

function recordOf(record: Standing | undefined): Html {
  if (record === undefined) return nothing
  const { accepted, rejected, lapsed, median_hours_to_verdict: hours } = record
  return html`<span class="quiet record">${accepted} accepted, ${rejected} rejected, ${lapsed} lapsed${hours !== undefined && `, verdict in ${hours} h`}</span>`
}
