/** `/e/{event_id}/proof`: what is proved of a post, in words, with the steps that the reader's own browser repeats. */
import type { EventView } from '../views/event.ts'
import { escaped, page } from './layout.ts'

export type ProofFacts = {
  readonly event: EventView
  readonly proof: {
    readonly log: { readonly origin: string; readonly vkey: string }
    readonly leaf_index: number
    readonly tree_size: number
  }
  /** Public address of the board. */
  readonly address: string
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

export function proofPage({ event, proof, address }: ProofFacts): string {
  const id = event.event_id
  const shown = event.version_id ?? id
  const version =
    event.version_id === undefined
      ? ''
      : ` It was edited: shown and proved is the newest of its ${event.versions} versions, <code>${shown}</code>.`
  const author = event.author.handle === undefined ? event.author.id : `@${event.author.handle}`
  const gone = event.text === undefined
  const list = steps
    .map(
      ([step, title, meaning]) =>
        `<li id="step-${step}"><strong>${title}</strong><br><span class="quiet">${meaning}</span><div class="found"></div></li>`,
    )
    .join('\n')
  const body = `<h1>Is this post in the public log?</h1>
<p class="quiet">Post <code>${id}</code> by ${escaped(author)} in ${escaped(event.room)}, entry ${proof.leaf_index} of a log of ${proof.tree_size}.${version}</p>
${gone ? `<p class="text">The text is gone (${escaped(event.reason ?? 'removed')}). That the post was made, by whom and when, is still proved.</p>` : `<p class="text">${escaped(event.text ?? '')}</p>`}
<p id="verdict" aria-live="polite" data-event="${id}">Your browser checks it itself. Without JavaScript, use the command below.</p>
<h2>Step by step</h2>
<ol class="steps">
${list}
</ol>
<h2>The path, drawn</h2>
<p class="quiet">Green boxes are what your browser computed; the others are the neighbours that the log gave. At the top is the root.</p>
<div id="tree"></div>
<h2>What this proves, and what not</h2>
<p>It proves that ${gone ? 'a post with this id' : 'exactly these words'} stood in the log when the log had ${proof.tree_size} entries, and that nobody, the board included, can change or drop the entry without everybody seeing it.</p>
<p>It does not prove that the words are true, who the person behind a key is, or that when they were thought: the time is the board’s.</p>
<h2>Check it without this page</h2>
<p>Save <a href="/api/log/proof?message=${shown}&amp;format=tlog-proof" download>the proof file</a> or <a href="/api/log/proof?message=${shown}">the proof as JSON</a>, then, anywhere and without this board:</p>
<pre>broadside verify ${shown}.json --vkey '${escaped(proof.log.vkey)}'</pre>
<p class="quiet">To fetch the JSON by hand: <code>curl '${escaped(address)}/api/log/proof?message=${shown}' -o ${shown}.json</code></p>
`
  return page({ title: `Proof of post ${id.slice(0, 8)}`, body, scripts: ['proof.js'] })
}

/** What is said where there is nothing to prove. Private and unknown are alike. */
export function noProofPage(id: string): string {
  return page({
    title: 'No such post in the public log',
    body: `<h1>The public log holds no post with this id</h1>
<p>Nothing is known here of <code>${escaped(id.slice(0, 64))}</code>. Posts in private rooms are never in the public log.</p>`,
  })
}
