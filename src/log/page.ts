/** `/log`: shows the public log: its size, newest signature, growth and witnesses, and how anyone can check it. */

import type { LogHistory, LogWitnesses } from '../pages/data.ts'
import { type Page, shown } from '../pages/page.ts'
import { type Html, html, nothing } from '../pages/pieces/html.ts'
import { facts } from '../pages/pieces/listing.ts'
import { countOf, utc, when, whole } from '../pages/pieces/time.ts'

const operations = ['log.checkpoint', 'log.proof', 'log.consistency', 'log.leaves', 'log.history', 'log.witnesses']

export const log: Page = {
  path: '/log',
  about: 'The public log: size, newest checkpoint, growth, witnesses, how to check it.',
  async show(ask) {
    const [head, history, witnesses] = await Promise.all([
      ask.read('log.checkpoint'),
      ask.read('log.history'),
      ask.read('log.witnesses'),
    ])
    const { origin, vkey, tree_size: size } = head
    // Cosignatures arrive shortly after the head, without any change of the board.
    const now = ask.nowFor(2)
    const checkpoint = ask.board.published()
    const signatures = signaturesOf(checkpoint).length
    const prefix = origin.slice(origin.indexOf('/'))
    return shown({
      title: 'The public log',
      description: `An append-only log of everything public here: ${whole(size)} entries, each provable, every head signed.`,
      section: 'log',
      head: html`<h1>The public log</h1><p class="lead">Everything public here is an entry in one append-only log. Its heads are signed, its proofs follow RFC 9162, and anyone can audit the board with independent tools.</p>`,
      main: html`<dl class="numbers"><div><dt>entries</dt><dd>${whole(size)}</dd></div>${totalOf(history)}<div><dt>${signatures === 1 ? 'signature' : 'signatures'} on the newest head</dt><dd>${signatures}</dd></div></dl>
<h2>Growth</h2>${growthPlot(history, now)}${earlierOf(history)}
<h2>The newest head</h2>
<p>The first three lines are the log’s name, size and root hash. The signatures follow: first by the log’s own key, then by its witnesses.</p>
<pre tabindex="0"><code>${checkpoint}</code></pre>
${statedBy(checkpoint)}
${witnessesOf(witnesses)}
<h2 id="check">Check it yourself</h2>
<ol><li>Save the log’s key once. With it you can detect any other version of the history:<pre tabindex="0"><code>${vkey}</code></pre><p><button type="button" hidden data-copy="${vkey}">Copy the key</button></p></li>
<li>Any post: open it and follow “signed, in the log”. Your browser verifies the proof, step by step, and remembers the key.</li>
<li>The whole log, offline, every signature and every leaf:<pre tabindex="0"><code>curl '${ask.board.address}/v1/export' -o board.jsonl
broadside verify board.jsonl --vkey '${vkey}'</code></pre><p><a href="/faq#own">Get the command</a></p></li>
<li>With a mirror that verifies each step of its growth:<pre tabindex="0"><code>broadside mirror ${ask.board.address} copy</code></pre></li>
<li>With any client of transparency logs: the tiles follow C2SP <code>tlog-tiles</code> under <code>${prefix}/</code>.</li></ol>
<h2>What it proves and does not prove</h2>
<p>It proves that a post was in the log at a certain size, and that nothing before it has been changed or removed since. It does not prove that the text is true, who is behind a key, or what a private room contains: private rooms leave no trace here.</p>`,
      aside: html`<section><h2>Read it</h2><ul><li><a href="${prefix}/checkpoint">newest checkpoint</a></li><li><a href="/log/vkey">the key</a></li><li><a href="/log/policy">policy of witnesses</a></li><li><a href="/api/log/checkpoint">checkpoint as JSON</a></li><li><a href="/v1/export">export with leaves</a></li></ul></section><section><h2>Operations</h2><ul>${operations.map((name) => html`<li><a href="/docs/${name}">${name}</a></li>`)}</ul></section>`,
      links: [['alternate', 'application/json', 'Newest checkpoint', '/api/log/checkpoint']],
    })
  },
}

/** Signature lines of a signed note (C2SP): an em dash, a name, base64. */
function signaturesOf(checkpoint: string): string[] {
  return [...checkpoint.matchAll(/^— (\S+) \S+$/gm)].map(([, name]) => name!)
}

/**
 * The three lines of a checkpoint (C2SP tlog-checkpoint), with the root in hex. The head that witnesses signed may be older than the log's
 * current size.
 */
function statedBy(checkpoint: string): Html {
  const [origin = '', size = '', root = ''] = checkpoint.split('\n')
  return facts([
    ['name', html`<code>${origin}</code>`],
    ['size', whole(Number(size))],
    ['root', html`<code>${Buffer.from(root, 'base64').toString('hex')}</code>`],
  ])
}

/** For a board whose log was rotated: the total that the curve shows. */
function totalOf({ logs }: LogHistory): Html {
  if (logs.length < 2) return nothing
  const total = logs.reduce((sum, { tree_size: size }) => sum + size, 0)
  return html`<div><dt>entries in ${logs.length} logs</dt><dd>${whole(total)}</dd></div>`
}

function witnessesOf({ witnesses, quorum }: LogWitnesses): Html {
  if (witnesses.length === 0)
    return html`<h2>Witnesses</h2><p>None is configured: only readers can compare what this board shows to different clients. A mirror or a saved key does this for you.</p>`
  const rows = witnesses.map(
    ({ name, answer, problem, asked_at: asked, tree_size: size, signed_at: signed }) =>
      html`<tr><th scope="row"><code>${name}</code></th><td><span class="tag ${answer === 'signed' ? 'good' : 'warm'}">${answer.replaceAll('_', ' ')}</span>${problem !== undefined && html` ${problem}`}</td><td>${asked !== undefined && when(asked)}</td><td>${size !== undefined && html`${whole(size)}${signed !== undefined && html`, ${when(signed)}`}`}</td></tr>`,
  )
  return html`<h2>Witnesses</h2><p>They receive each new head, and sign it only if it extends what they signed before (${quorum}).</p><section class="scroll" tabindex="0" aria-label="witnesses"><table><thead><tr><th scope="col">witness</th><th scope="col">last answer</th><th scope="col">asked</th><th scope="col">newest size signed</th></tr></thead><tbody>${rows}</tbody></table></section>`
}

/** Closed logs: the first entry of the next log names their final size and root. */
function earlierOf({ logs }: LogHistory): Html {
  const closed = logs.filter(({ state }) => state !== 'open')
  if (closed.length === 0) return nothing
  return html`<p>Earlier logs; the first entry of the next log states the final size and root of each:</p><ul>${closed.map(({ origin, tree_size: size, tiles, lost }) => html`<li><a href="${tiles}checkpoint"><code>${origin}</code></a>, ${lost ? 'lost after' : 'closed at'} ${whole(size)} entries, <a href="${tiles}vkey">its key</a></li>`)}</ul>`
}

const width = 640
const height = 180
const bottom = 18
const top = 14

type Place = { readonly at: number; readonly size: number }

/** The growth of the public log as a rising curve, drawn on the server from the board's data points. */
function growthPlot({ logs, points }: LogHistory, now: number): Html {
  const total = logs.reduce((sum, { tree_size: size }) => sum + size, 0)
  const places = placesOf({ logs, points })
  const [first] = places
  if (first === undefined) return html`<p class="empty">The log has no entries yet.</p>`
  const span = Math.max(1, now - first.at)
  const x = (at: number): string => (((at - first.at) * width) / span).toFixed(1)
  const y = (size: number): string =>
    (height - bottom - (size * (height - bottom - top)) / Math.max(1, total)).toFixed(1)
  // Between two points, all that is known is that it grew; after the last one it does not change.
  const line = places.map(({ at, size }, n) => `${n === 0 ? 'M' : 'L'}${x(at)} ${y(size)}`).join('')
  const curve = `${line}H${width}`
  const said = `The log grew to ${countOf(total, 'entry', 'entries')} since ${utc(first.at)} UTC.`
  return html`<figure><svg class="plot growth" viewBox="0 0 ${width} ${height}" role="img" aria-label="${said}"><path class="area" d="${curve}V${height - bottom}H0z"/><path class="axis" d="M0 ${height - bottom}H${width}"/><path class="curve" d="${curve}"/><text x="0" y="${height - 3}">${utc(first.at)}</text><text x="${width}" y="${height - 3}" text-anchor="end">now</text><text x="${width}" y="11" text-anchor="end">${whole(total)}</text></svg><figcaption>${said}</figcaption></figure>`
}

/** All logs of the board as one line: each begins where the previous one ended. */
function placesOf({ logs, points }: LogHistory): Place[] {
  const before = new Map<string, number>()
  let sum = 0
  for (const { log, tree_size: size } of logs) {
    before.set(log, sum)
    sum += size
  }
  return points.flatMap(({ log, at, tree_size: size }) => {
    const base = before.get(log)
    return base === undefined ? [] : [{ at, size: base + size }]
  })
}
