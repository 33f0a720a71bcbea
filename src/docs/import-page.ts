/** `/docs/import`: what `broadside import` accepts, format by format, and the result. */

import { sizes, sourceSizes } from '../../actors/kernel/limits.ts'
import { boardSchemaPath } from '../format/board-schema.ts'
import { type Page, shown } from '../pages/page.ts'
import { docsTabs } from '../pages/pieces/docs-tabs.ts'
import { type Html, html } from '../pages/pieces/html.ts'

type Described = {
  readonly id: string
  readonly name: string
  readonly command: string
  readonly file: Html
  readonly threads: Html
  readonly authors: Html
  readonly left: Html
}

const formats: readonly Described[] = [
  {
    id: 'mbox',
    name: 'Mail (mbox)',
    command: 'broadside import archive.mbox --room boats',
    file: html`Mail in one file (RFC 4155): each message begins with a line <code>From </code>. Texts of MIME messages are decoded: multipart, quoted-printable, base64 and all character sets that Node.js knows. HTML becomes plain text where there is no plain text.`,
    threads: html`<code>In-Reply-To</code> and <code>References</code>. Where the answered mail is missing, the nearest earlier one in the file is answered. The subject is shown above a mail that begins a thread.`,
    authors: html`One for each mail address. Addresses are not shown: a post names the author by the name in the mail, or by the part before the @. The id in the source is the <code>Message-ID</code>.`,
    left: html`Attachments, mails without text or author, and mails over 32 MiB.`,
  },
  {
    id: 'discourse',
    name: 'Discourse',
    command: 'broadside import topics.jsonl --room bread',
    file: html`JSON of the API: a topic (<code>/t/17.json?include_raw=1</code>), a list of posts (<code>/posts.json</code>), an array of them, or one of them a line. <code>raw</code> stays Markdown; without it <code>cooked</code> becomes plain text.`,
    threads: html`A topic is a thread with its title; <code>reply_to_post_number</code> nests the replies.`,
    authors: html`One for each <code>username</code>. The id in the source is topic and post number, as in the address of the post.`,
    left: html`Private messages, whispers, small actions, hidden and deleted posts, and uploads. The API gives 20 posts of a topic at once: posts that a topic lists and the file lacks are counted.`,
  },
  {
    id: 'slack',
    name: 'Slack',
    command: 'broadside import export.zip',
    file: html`The export of a workspace, as a zip or unpacked, with <code>users.json</code>, <code>channels.json</code> and a directory for each channel. Files over 64 MiB are refused.`,
    threads: html`<code>thread_ts</code>. Each channel is a room; <code>--room</code> puts all into one. Mentions, channels and links become names.`,
    authors: html`One for each user id, named by display name or full name. Addresses are not shown.`,
    left: html`Private channels and direct messages, messages about joining and leaving, files, and reactions.`,
  },
  {
    id: 'hackernews',
    name: 'Hacker News',
    command: 'broadside import items.jsonl --room ponds',
    file: html`Items in the public JSON form of the API, one a line or an array. Their HTML becomes plain text.`,
    threads: html`<code>parent</code>: a story with its comments is a thread.`,
    authors: html`One for each name in <code>by</code>. The id in the source is that of the item.`,
    left: html`Deleted and dead items, and scores.`,
  },
  {
    id: 'jsonl',
    name: 'JSON lines',
    command: 'broadside import corpus.jsonl.gz',
    file: html`One message a line: <code>{"id","room","author","parent","title","text","created_at"}</code>. <code>parent</code>, <code>title</code> and <code>created_at</code> (Unix seconds or ISO 8601) may be null or absent. The export of a board is taken as well.`,
    threads: html`<code>parent</code>, or of an export <code>reply_to</code>; edits follow what they edit.`,
    authors: html`One for each <code>author</code>. An author whose name is a free handle gets it.`,
    left: html`Lines over 4 MiB, and of an export its signatures, ids, votes and times.`,
  },
]

export const docsImport: Page = {
  path: '/docs/import',
  about: 'What the import command takes: mail, Discourse, Slack, Hacker News and JSON lines.',
  show: (ask) =>
    shown({
      title: 'Importing',
      section: 'docs',
      head: html`<p class="crumbs"><a href="/docs">Documentation</a></p><h1>Importing</h1><p class="lead"><code>broadside import</code> posts what people wrote elsewhere, in its threads, each post signed with a key of its author.</p>`,
      bar: docsTabs('/docs/import'),
      main: html`<h2 id="how">How it works</h2><pre tabindex="0"><code>broadside import archive.mbox --room boats --url ${ask.board.address}</code></pre>
<ul><li>The format is recognized by content, or named by <code>--format</code>. Files may be compressed with gzip.</li>
<li>Each author of a system has a key, derived from a secret seed. The seed is kept in <code>FILE.seed</code>, or given with <code>--seed</code>: anyone who has it can sign as all of them.</li>
<li>Progress is kept in <code>FILE.import</code>. The same command resumes an interrupted import and posts nothing twice.</li>
<li>At the end it reports what was not imported and why: what is broken, what is too long (${sizes.text_bytes} bytes), what the format leaves out. <code>--list</code> names each.</li></ul>
<h2 id="source">What a post says</h2><p>Each post has a signed source in <code>data</code>, shown as “imported: alice, 2019-03-02”:</p><pre tabindex="0"><code>{"schema":1,"source":{"system":"mbox","id":"key-1@harbour.example","author":"alice","at":1551518100}}</code></pre>
<ul><li>It is the claim of the key that signed it. The board does not check it.</li><li><code>id</code> has at most ${sourceSizes.id_characters} characters, <code>author</code> ${sourceSizes.author_characters}; <code>at</code> is in Unix seconds and may be absent. <code>--system</code> names another system than the format.</li><li>It does not order or rank posts, and gives nobody a handle. Lists use the time at which the board accepted a post.</li><li>A room whose <a href="/docs/room.policy.set">policy</a> has <code>imports</code> false refuses posts with a source.</li></ul>
${formats.map(formatHtml)}${wholeBoard}`,
      aside: html`<section><h2>Formats</h2><ul>${formats.map(({ id, name }) => html`<li><a href="#${id}">${name}</a></li>`)}<li><a href="#as-it-was">A whole board</a></li></ul></section><section><h2>Limits</h2><p>The <a href="/docs/limits">limits of the board</a> hold for imports. The command says before it begins how long they make it take.</p></section>`,
    }),
}

const wholeBoard = html`<h2 id="as-it-was">A whole board, as it was</h2><p><a href="/v1/export?stream=board"><code>/v1/export?stream=board</code></a> has everything public of this board as JSON lines, and <code>broadside import --as-it-was</code> makes a new board of them: the same ids, authors, signatures, times and threads.</p><pre tabindex="0"><code>broadside export --stream board --out board.jsonl.gz
BASE_URL=https://board.example broadside import board.jsonl.gz --as-it-was --data ./board</code></pre>
<p>The <a href="${boardSchemaPath}">JSON Schema</a> describes each line. The first has type <code>board</code>: version, service id, and head of the log. The last has type <code>end</code>, and counts the lines. Between them, in the order of the log:</p>
<ul><li><code>room</code>, <code>event</code> (a post or a version of one), <code>handle</code>, and <code>act</code>: all else, named by <code>op</code>: roles, policies, bans, profiles, keys, documents, attachments with their bytes, moderation, works, credits, tools.</li>
<li><code>signed</code> is what was signed, with its signature. <code>entries</code> are its entries in the public log. Bytes are hex, in <code>facts</code> <code>{"hex": "…"}</code>.</li>
<li><code>votes</code>, after all others: sums. Voters are not listed.</li>
<li><code>unreadable</code> stands for a record that is damaged on the disk of the old board. No board can be made of a file with such a line: export from a follower, or from a restored backup.</li></ul>
<p>Texts that readers are not shown are left out, and only their hash is included: posts that are hidden, redacted, expiring or in rooms with <code>archive</code> false, deleted documents and files, and erased identities. Private rooms are left out altogether. The import verifies every signature, and reports what rests on the word of the old board alone.</p>`

function formatHtml({ id, name, command, file, threads, authors, left }: Described): Html {
  return html`<h2 id="${id}">${name}</h2><p>${file}</p><pre tabindex="0"><code>${command}</code></pre><ul><li><b>Threads:</b> ${threads}</li><li><b>Authors:</b> ${authors}</li><li><b>Not imported:</b> ${left}</li></ul>
`
}
