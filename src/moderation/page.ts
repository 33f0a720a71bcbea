/** `/moderation`: every public act of moderation on the board, who did it, when and why, each with its proof. */
import { parseStrictText } from '../format/strict-json.ts'
import type { ResultOf } from '../pages/data.ts'
import { type Ask, type Page, shown } from '../pages/page.ts'
import { type Html, html } from '../pages/pieces/html.ts'
import { empty, leftOut, pager } from '../pages/pieces/listing.ts'
import { nameOf, person } from '../pages/pieces/person.ts'
import { excerpt } from '../pages/pieces/text.ts'
import { utc, when } from '../pages/pieces/time.ts'

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
    const names = await namesOf(ask, list.acts)
    return shown({
      title: 'Moderation log',
      description:
        'What owners, moderators and operators of this board did to what others made, signed and in the public log.',
      section: 'log',
      head: html`<h1>Moderation log</h1><p class="lead">What owners, moderators and operators did to what others made. Each act is signed by who did it and is an entry of the <a href="/log">public log</a>: none can be changed or left out later. Private rooms have their own logs, which their members read.</p>`,
      main: html`${list.acts.length === 0 && list.unreadable === undefined ? empty('Nothing has been moderated yet.') : html`<ul class="rows">${list.acts.map((act) => html`<li>${actLine(act, names)}</li>`)}</ul>`}${leftOut(list)}${pager('/moderation', { cursor }, list)}`,
      aside: html`<section><h2>Check it</h2><p>“Proof” gives the signed bytes and the path of the entry to a signed head. Save it, and check it anywhere:</p><pre tabindex="0"><code>broadside verify proof.json --vkey KEY</code></pre><p><a href="/faq#own">Get the command</a> · <a href="/log">The key</a> · <a href="/api/moderation">JSON</a> · <a href="/docs/moderation.log">moderation.log</a></p></section>`,
      links: [['alternate', 'application/json', 'Moderation log', '/api/moderation']],
    })
  },
}

function actLine(act: Act, nameAt: Names): Html {
  const { event_id: id, action, actor, room, reason, created_at: at, log } = act
  const place = room !== undefined && html` in <a href="/room/${room}">${room}</a>`
  const proof =
    log.state === 'included'
      ? html`<a href="/api/log/proof?message=${id}">Proof</a>, entry ${log.index!}`
      : 'From before acts of moderation were in the public log'
  return html`<div class="line">${person(actor)} <span>${whatWasDone(act, nameAt)}${place}</span> ${when(at)}</div>${action === 'room.policy.set' && html`<p>It set: ${policyWords(detailIn(act.detail))}.</p>`}${reason !== undefined && reason !== '' && html`<p dir="auto">${excerpt(reason, reasonCharacters)}</p>`}<p class="quiet">${proof} · <a href="/docs/${action}"><code>${action}</code></a></p>`
}

/** The handles of identities that acts were about. */
type Names = ReadonlyMap<string, string>

async function namesOf(ask: Ask, acts: readonly Act[]): Promise<Names> {
  const ids = new Set(acts.flatMap(({ target }) => (target !== undefined && isIdentity(target) ? [target] : [])))
  const found = await Promise.all([...ids].map((target) => ask.find('identity.get', { target })))
  return new Map(
    found.flatMap((each) => (each?.identity.handle === undefined ? [] : [[each.identity.id, each.identity.handle]])),
  )
}

function isIdentity(target: string): boolean {
  return /^[0-9a-f]{64}$/.test(target)
}

/** What each act did, in words before and after its target. */
const verbs: Readonly<Record<string, readonly [before: string, after?: string]>> = {
  'identity.suspend': ['suspended'],
  'identity.unsuspend': ['ended the suspension of'],
  'identity.erase': ['erased'],
  'room.member.add': ['added', 'as a member'],
  'room.member.remove': ['removed the member'],
  'room.moderator.add': ['made', 'a moderator'],
  'room.moderator.remove': ['made', 'an ordinary member'],
  'room.owner.transfer': ['gave the room to'],
  'room.ban': ['banned'],
  'room.unban': ['ended the ban of'],
  'room.policy.set': ['changed the policy'],
  'room.hide': ['hid'],
  'room.restore': ['showed', 'again'],
  'event.redact': ['deleted the text of'],
  'thread.move': ['moved'],
  'blob.delete': ['deleted'],
  'blob.takedown': ['took down'],
  'docs.delete': ['deleted'],
}

function whatWasDone({ action, target, detail }: Act, nameAt: Names): Html {
  const given = detailIn(detail)
  const what = target === undefined ? '' : targetOf(action, target, nameAt)
  if (action === 'thread.pin') return html`${given.pinned === false ? 'unpinned' : 'pinned'} ${what}`
  if (action === 'thread.lock') return html`${given.locked === false ? 'unlocked' : 'locked'} ${what}`
  const [before, after] = verbs[action] ?? [action]
  const to =
    action === 'thread.move' && typeof given.to === 'string' && html` to <a href="/room/${given.to}">${given.to}</a>`
  return html`${before}${what !== '' && html` ${what}`}${after !== undefined && ` ${after}`}${to}`
}

/** Data of the command, which was checked before the board accepted it. */
function detailIn(detail = '{}'): Readonly<Record<string, unknown>> {
  const found = parseStrictText(detail)
  return found.ok ? Object(found.value) : {}
}

const policyNames: Readonly<Record<string, string>> = {
  write: 'threads by',
  reply: 'replies by',
  rules: 'rules',
  promotion: 'advertisements',
  front_page: 'on the front page',
  top_level_per_day: 'threads of one person in a day',
  posts_per_minute: 'posts of one person in a minute',
  closed: 'closed',
  closes_at: 'closes at',
  max_events: 'posts at most',
  proof_bits: 'bits of work for a post',
  ttl_max: 'longest lifetime of a post in seconds',
  archive: 'in the export',
  imports: 'imports accepted',
}

/** What a policy was set to; numbers that mean no limit are 0. */
function policyWords(given: Readonly<Record<string, unknown>>): string {
  const wordsOf = (name: string, value: unknown) => {
    if (typeof value === 'boolean') return value ? 'yes' : 'no'
    if (value === 0 || value === '') return 'none'
    if (name === 'rules') return `“${excerpt(String(value), reasonCharacters)}”`
    return name === 'closes_at' ? `${utc(Number(value))} UTC` : String(value)
  }
  return Object.entries(given)
    .filter(([name]) => policyNames[name] !== undefined)
    .map(([name, value]) => `${policyNames[name]} ${wordsOf(name, value)}`)
    .join('; ')
}

/** A person by name, a post, a document, or a file. */
function targetOf(action: string, target: string, nameAt: Names): Html {
  if (action.startsWith('blob.')) return html`the file <code>${excerpt(target, 12)}</code>`
  if (isIdentity(target)) return html`<a href="/i/${target}">${nameOf({ id: target, handle: nameAt.get(target) })}</a>`
  if (!/^[0-9a-f]{32}$/.test(target)) return html`<code>${excerpt(target, 64)}</code>`
  if (action.startsWith('docs.')) return html`<a href="/d/${target}">a document</a>`
  return html`<a href="/e/${target}">${action.startsWith('thread.') ? 'a thread' : 'a post'}</a>`
}
