/** `/e/{event_id}/proof`: what is proved of a post, in words, with the steps that the reader's own browser repeats. */
import { refusal } from '../../actors/kernel/refusals.ts'
import { html } from '../pages/html.ts'
import { type Page, Refused, shown } from '../pages/page.ts'
import { nameOf } from '../pages/pieces/person.ts'
import type { EventView } from '../posts/view.ts'

type Proof = {
  readonly log: { readonly origin: string; readonly vkey: string }
  readonly leaf_index: number
  readonly tree_size: number
}

const steps: readonly (readonly [id: string, title: string, meaning: string])[] = [
  [
    'signature',
    'The author signed these words',
    'The Ed25519 signature fits the exact bytes of the post and the author’s public key, and the author’s id is the SHA-256 of a key of theirs.',
  ],
  [
    'entry',
    'The log’s entry is about these words',
    'The entry names the SHA-256 of the signed bytes; the first half of that hash is the id of the post.',
  ],
  ['leaf', 'The entry is a leaf of the log', 'The leaf is the SHA-256 of a zero byte and the entry (RFC 9162).'],
  [
    'path',
    'The leaf leads to the root',
    'Hashed with its neighbours, step by step, the leaf gives the one hash that stands for everything in the log.',
  ],
  [
    'checkpoint',
    'The log signed that root',
    'The checkpoint states the size of the log and this root, and the log’s key has signed it. Your browser remembers the key it saw first.',
  ],
]

export const proof: Page = {
  path: '/e/{event_id}/proof',
  about: 'The proof that a post is in the public log, repeated by the reader’s browser.',
  async show(ask, { parameters }) {
    const id = parameters.event_id!
    const found = await ask.find<{ event: EventView }>('event.get', { event_id: id })
    // What is shown is the newest version, so that is what is proved.
    const version = found?.event.version_id ?? id
    const it = found === undefined ? undefined : await ask.find<Proof>('log.proof', { event_id: version })
    if (found === undefined || it === undefined) throw new Refused(noProof(id))
    const { event } = found
    const shownId = event.version_id ?? event.event_id
    const gone = event.text === undefined
    const text =
      event.text !== undefined &&
      (await ask.mainText({ kind: 'verbatim', text: event.text, whole: `/api/events/${shownId}` }))
    const edited =
      event.version_id !== undefined &&
      html` It was edited: shown and proved is the newest of its ${event.versions} versions, <code>${shownId}</code>.`
    return shown({
      title: `Proof of post ${event.event_id.slice(0, 8)}`,
      description: 'Check in your own browser that this post is in the public log.',
      section: 'log',
      isListed: false,
      head: html`<p class="crumbs"><a href="/e/${event.event_id}">The post</a></p><h1>Is this post in the public log?</h1><p class="quiet">Post <code>${event.event_id}</code> by ${nameOf(event.author)} in ${event.room}, entry ${it.leaf_index} of a log of ${it.tree_size}.${edited}</p>`,
      main: html`<section class="quoted" tabindex="0" aria-label="the text of the post">${gone ? html`<p class="text">The text is gone (${event.reason ?? 'removed'}). That a post with this id was made, in which room and when, is still proved; by whom is the board’s word.</p>` : text}</section>
<p id="verdict" role="status" data-event="${event.event_id}">Your browser checks it itself. Without JavaScript, use the command below.</p>
<h2>Step by step</h2>
<ol class="steps">
${steps.map(([step, title, meaning]) => html`<li id="step-${step}"><strong>${title}</strong><br><span class="quiet">${meaning}</span><div class="found"></div></li>\n`)}</ol>
<h2>The path, drawn</h2>
<p class="quiet">Green boxes are what your browser computed; the others are the neighbours that the log gave. At the top is the root.</p>
<div id="tree"></div>
<h2>What this proves, and what not</h2>
<p>It proves that ${gone ? 'a post with this id' : 'exactly these words'} stood in the log when the log had ${it.tree_size} entries, and that nobody, the board included, can change or drop the entry without everybody seeing it.</p>
<p>It does not prove that the words are true, who the person behind a key is, or when they were thought: the time is the board’s.</p>
<h2>Check it without this page</h2>
<p>Save <a href="/api/log/proof?message=${shownId}&amp;format=tlog-proof" download>the proof file</a> or <a href="/api/log/proof?message=${shownId}">the proof as JSON</a>, then, anywhere and without this board:</p>
<pre tabindex="0">broadside verify ${shownId}.tlog-proof --vkey '${it.log.vkey}'
broadside verify ${shownId}.json --vkey '${it.log.vkey}'</pre>
<p class="quiet">To fetch the JSON by hand:</p>
<pre tabindex="0">curl -o ${shownId}.json \\
  '${ask.board.address}/api/log/proof?message=${shownId}'</pre>`,
      scripts: ['proof.js'],
    })
  },
}

/** What is said where there is nothing to prove. Private and unknown are alike. */
function noProof(id: string) {
  return refusal(
    'not_found',
    `the public log holds no post with the id ${id.slice(0, 64)}; posts in private rooms are never in it`,
    'event_id',
  )
}
