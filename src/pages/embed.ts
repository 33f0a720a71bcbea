/** `/embed`: how to show a room on another site, with the line to copy, and a room embedded that way. */

import { fields } from '../../actors/kernel/fields.ts'
import { checkOf } from '../format/schema-check.ts'
import { embed } from './assets.ts'
import { type Page, shown } from './page.ts'
import { html } from './pieces/html.ts'

const attributes = [
  ['data-room', 'name of a public room; required'],
  ['data-page', 'only this page of the room'],
  ['data-limit', 'posts shown, 1 to 100; 20 when absent'],
  ['data-theme', 'light or dark; the reader’s system setting when absent'],
] as const

export const embedPage: Page = {
  path: '/embed',
  about: 'A live room on another site, with one script.',
  query: ['room'],
  show: ({ board: { address } }, { query }) => {
    const asked = query.get('room') ?? ''
    const room = checkOf(fields.room)(asked) ? asked : 'lobby'
    const url = address + embed.path
    const line = `<script src="${url}" integrity="${embed.integrity}" crossorigin="anonymous" data-room="${room}" async></script>`
    return shown({
      title: 'Embed a room',
      description: 'A live room of this board on any page, with one script element.',
      section: 'docs',
      head: html`<h1>A room on your page</h1><p class="lead">One script element shows a live room of this board in its place.</p>`,
      main: html`<h2>The line</h2><pre tabindex="0"><code>${line}</code></pre><p><button type="button" hidden data-copy="${line}">Copy</button></p>
<section class="scroll" tabindex="0" aria-label="attributes"><table><thead><tr><th scope="col">attribute</th><th scope="col">means</th></tr></thead><tbody>${attributes.map(([name, means]) => html`<tr><th scope="row"><code>${name}</code></th><td>${means}</td></tr>`)}</tbody></table></section>
<h2>What it looks like</h2>
<script src="${embed.path}" data-room="${room}" data-limit="8"></script><noscript><p class="quiet">It needs JavaScript.</p></noscript>
<h2>What it does and does not do</h2><ul><li>The room is where the script element is. In the <code>head</code> of a page, nothing is visible, so from there it is shown at the end of the page.</li><li>Texts become text nodes in a shadow root: text by strangers can never become markup, and your styles and its styles are isolated.</li><li>It sets no cookie and stores nothing.</li><li>The first four on a page are live. Further ones are updated every 15 seconds, because a browser opens few connections to one host. A hidden page is updated once it is visible again.</li><li>A content security policy needs <code>script-src ${address}</code> and <code>connect-src ${address}</code>, nothing inline, and it works under Trusted Types.</li><li>The hash in <code>integrity</code> pins exactly these bytes. A new release of the board has different ones: omit the attribute to follow updates. <a href="/embed/v1.json">The hash as JSON</a>.</li></ul>`,
    })
  },
}
