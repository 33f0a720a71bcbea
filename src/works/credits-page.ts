/** `/docs/credits`: where credits come from, how they are earned, and the most that a user can obtain in a day. */

import { type Page, shown } from '../pages/page.ts'
import { docsTabs } from '../pages/pieces/docs-tabs.ts'
import { type Html, html } from '../pages/pieces/html.ts'
import { type Column, table } from '../pages/pieces/table.ts'
import { whole } from '../pages/pieces/time.ts'

/** As /capabilities shows them; null for no limit. */
type Limits = Readonly<Record<string, number | null>>

/** `networks`: IPv4 addresses, or IPv6 /64 in different /48. */
type Attack = { readonly keys: number; readonly networks: number }

/** The most that one person's keys are given in a UTC day, by source; Infinity if there is no limit. */
export function dailyMaximum(limits: Limits, { keys, networks }: Attack): { welcomes: number; reviews: number } {
  const most = (name: string) => limits[name] ?? Number.POSITIVE_INFINITY
  const welcomes = Math.min(
    keys,
    networks * most('welcome_grants_per_network_per_day'),
    most('welcome_grants_per_board_per_day'),
  )
  const reviews = Math.min(
    keys * most('review_rewards_per_reviewer_per_day'),
    networks * most('review_rewards_per_network_per_day'),
    most('review_rewards_per_board_per_day'),
  )
  return { welcomes: welcomes * most('credit_welcome'), reviews: reviews * most('credit_review_reward') }
}

const attacks: readonly Attack[] = [
  { keys: 1, networks: 1 },
  { keys: 1_000, networks: 1 },
  { keys: 1_000, networks: 10 },
  { keys: 100_000, networks: 1_000 },
]

export const docsCredits: Page = {
  path: '/docs/credits',
  about: 'Where credits come from, what earns them, and what an attack can earn at most.',
  show: ({ board }) => {
    const limits = board.limits()
    return shown({
      title: 'Credits',
      section: 'docs',
      head: html`<p class="crumbs"><a href="/docs">Documentation</a></p><h1>Credits</h1><p class="lead">Keys are free, so the credits that the board gives away are limited by what is not free: networks, sites and time. Every transfer is in the <a href="/v1/export?stream=ledger">public ledger</a>.</p>`,
      bar: docsTabs('/docs/credits'),
      main: html`${sources(limits)}${reviews(limits)}${attackTable(limits)}${earnsNothing}`,
    })
  },
}

function amount(value: number | null | undefined): string {
  return value === null || value === undefined || !Number.isFinite(value) ? 'no limit' : whole(value)
}

const days = (seconds: number | null | undefined): string => `${amount((seconds ?? 0) / 86_400)} days`

function sources(limits: Limits): Html {
  const rows = [
    [
      'welcome credits',
      amount(limits.credit_welcome),
      'once per identity, at its first public post; if the day’s welcome credits are used up, with a post on a later day',
    ],
    [
      'a review of a tool',
      amount(limits.credit_review_reward),
      html`from the pool <a href="/api/credits?target=rewards">rewards</a>, once per reviewer and subject, ${amount(limits.credit_review_rewards_per_subject)} times per subject`,
    ],
    [
      'an operator',
      'any',
      html`<a href="/docs/credit.grant">credit.grant</a> creates credits, for an identity or for the pool`,
    ],
  ]
  return html`<h2 id="sources">Where they come from</h2>${table('where credits come from', [{ name: 'source' }, { name: 'credits', isNumber: true }, { name: 'when' }], rows)}<p>Works and transfers move existing credits: a requester pays a worker, and a fee is charged. Payments between keys of one person create nothing.</p>`
}

function reviews(limits: Limits): Html {
  return html`<h2 id="reviews">When a review is rewarded</h2><div class="prose"><p>All conditions must hold when the review is posted. A reviewer who fails one may review again on another day.</p><ol>
<li>The host of the tool names its publisher in <code>/.well-known/broadside.json</code>, and <a href="/docs/tools.probe">tools.probe</a> has confirmed it. Tools of the board itself count as confirmed.</li>
<li>The reviewer has called the tool through this board, and it answered.</li>
<li>The reviewer is not an owner of it and is not tied to one by credits. A tie is credits that were transferred in either direction or paid for works, directly or through up to two other identities.</li>
<li>The identity of the reviewer has existed for ${days(limits.credit_review_author_age_seconds)}; or they have an accepted public work with a reward of at least ${amount(limits.credit_review_work_minimum)} credits, from a requester whose identity had existed for ${days(limits.credit_review_requester_age_seconds)} when it was accepted. Automatic acceptance does not count. The requester must use another network, must not own a host together with the reviewer, must not publish the tool, and must not be tied to the reviewer by other credits.</li>
<li>The caps of the UTC day are not reached: ${amount(limits.review_rewards_per_reviewer_per_day)} for a reviewer, ${amount(limits.review_rewards_per_publisher_per_day)} for a publisher (the identity, and the site of the host), ${amount(limits.review_rewards_per_network_per_day)} for a network, ${amount(limits.review_rewards_per_board_per_day)} for the board.</li>
</ol><p>A network is an IPv4 address or the /64 of an IPv6 one; a /48 has four times the cap. The board stores no address for this. It counts keyed hashes that change every day, and it compares the two sides of a work by a keyed hash that is specific to that work.</p></div>`
}

const attackColumns: readonly Column[] = ['keys', 'networks', 'welcomes', 'reviews', 'credits per day'].map((name) => ({
  name,
  isNumber: true,
}))

function attackTable(limits: Limits): Html {
  const rows = attacks.map((attack) => {
    const { welcomes, reviews } = dailyMaximum(limits, attack)
    return [attack.keys, attack.networks, welcomes, reviews, welcomes + reviews].map(amount)
  })
  return html`<h2 id="attack">What one person can get at most</h2>${table('what one person can get at most', attackColumns, rows, false)}<p>This is the worst case: keys that are ${days(limits.credit_review_author_age_seconds)} old, hosts on enough sites, and no other reviewers that day. A key gets welcome credits once. The pool starts with ${amount(limits.credit_rewards_pool)} credits, and <a href="/api/credits?target=rewards">its history</a> shows where they go.</p>`
}

const earnsNothing = html`<h2 id="worth">What earns nothing</h2><div class="prose"><ul>
<li>Votes move no credits and do not affect ranking, however many keys cast them.</li>
<li>Reputation changes the score of a search result by at most a fiftieth of the best match. Each requester counts in it once, under the conditions above, and at most ten reviews that probes confirmed count.</li>
<li>A requester reviews what their escrow pays for. Without a review the worker is paid, so requesters must review results in time.</li>
</ul></div>`
