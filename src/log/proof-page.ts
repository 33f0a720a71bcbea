/** `/e/{event_id}/proof`: explains in words what is proved about a post, with the steps that the reader's own browser repeats. */
import { refusal } from '../../actors/kernel/refusals.ts'
import { type Page, Refused, shown } from '../pages/page.ts'
import { html } from '../pages/pieces/html.ts'
import { nameOf } from '../pages/pieces/person.ts'
import { goneWords } from '../pages/pieces/text.ts'

const steps: readonly (readonly [id: string, title: string, meaning: string])[] = [
  [
    'signature',
    'The author signed this text',
    'The Ed25519 signature matches the exact bytes of the post and the author’s public key, and the author’s id is the SHA-256 of a key of theirs.',
  ],
  [
    'entry',
    'The log’s entry refers to this text',
    'The entry names the SHA-256 of the signed bytes; the first half of that hash is the id of the post.',
  ],
  ['leaf', 'The entry is a leaf of the log', 'The leaf is the SHA-256 of a zero byte and the entry (RFC 9162).'],
  [
    'path',
    'The leaf leads to the root',
    'Hashed with its neighbors, step by step, the leaf yields the single hash that represents the whole log.',
  ],
  [
    'checkpoint',
    'The log signed that root',
    'The checkpoint states the size of the log and this root, and the log’s key has signed it. Your browser remembers the key it saw first.',
  ],
]

export const proof: Page = {
  path: '/e/{event_id}/proof',
  about: 'The proof that a post is in the public log, verified by the reader’s browser.',
  async show(ask, { parameters }) {
    const id = parameters.event_id!
    const found = await ask.find('event.get', { event_id: id })
    // The page shows the newest version, so that is what it proves.
    const version = found?.event.version_id ?? id
    const it = found === undefined ? undefined : await ask.find('log.proof', { event_id: version })
    if (found === undefined || it === undefined) throw new Refused(noProof(id))
    const { event } = found
    const shownId = event.version_id ?? event.event_id
    const gone = event.text === undefined
    const text =
      event.text !== undefined &&
      (await ask.mainText({ kind: 'verbatim', text: event.text, whole: `/api/events/${shownId}` }))
    const edited =
      event.version_id !== undefined &&
      html` It was edited: this page proves the newest of its ${event.versions} versions, <code>${shownId}</code>.`
    return shown({
      title: `Proof of post ${event.event_id.slice(0, 8)}`,
      description: 'Check in your own browser that this post is in the public log.',
      section: 'log',
      isListed: false,
      head: html`<p class="crumbs"><a href="/e/${event.event_id}">The post</a></p><h1>Is this post in the public log?</h1><p class="quiet">Post <code>${event.event_id}</code> by ${nameOf(event.author)} in ${event.room}, entry ${it.leaf_index} of a log of ${it.tree_size}.${edited}</p>`,
      main: html`<section class="quoted" tabindex="0" aria-label="the text of the post">${gone ? html`<p class="text">${goneWords(event)} The proof still covers its id, its room and its time; for its author there is only the board’s claim.</p>` : text}</section>
<p id="verdict" role="status" data-event="${event.event_id}">Your browser verifies the proof. Without JavaScript, use the command below.</p>
<h2>Step by step</h2>
<ol class="steps">
${steps.map(([step, title, meaning]) => html`<li id="step-${step}"><strong>${title}</strong><br><span class="quiet">${meaning}</span><div class="found"></div></li>\n`)}</ol>
<h2>The path, drawn</h2>
<p class="quiet">Green boxes are what your browser computed; the others are the siblings that the log supplied. At the top is the root.</p>
<div id="tree"></div>
<h2>What this proves and does not prove</h2>
<p>It proves that ${gone ? 'a post with this id' : 'exactly this text'} was in the log when the log had ${it.tree_size} entries, and that no one, including the board, can change or remove the entry undetected.</p>
<p>It does not prove that the text is true, who is behind a key, or when it was written: the time is set by the board.</p>
<h2>Check it without this page</h2>
<p>Save <a href="/api/log/proof?message=${shownId}&amp;format=tlog-proof" download>the proof file</a> or <a href="/api/log/proof?message=${shownId}">the proof as JSON</a>, then run this anywhere, without this board:</p>
<pre tabindex="0">broadside verify ${shownId}.tlog-proof --vkey '${it.log.vkey}'
broadside verify ${shownId}.json --vkey '${it.log.vkey}'</pre>
<p><a href="/faq#own">Get the command</a></p>
<p class="quiet">To fetch the JSON by hand:</p>
<pre tabindex="0">curl -o ${shownId}.json \\
  '${ask.board.address}/api/log/proof?message=${shownId}'</pre>`,
      scripts: ['proof.js'],
    })
  },
}

/** Shown when there is nothing to prove. Private and unknown posts look alike. */
function noProof(id: string) {
  return refusal(
    'not_found',
    `the public log has no post with the id ${id.slice(0, 64)}; posts in private rooms are never in it`,
    'event_id',
  )
}
