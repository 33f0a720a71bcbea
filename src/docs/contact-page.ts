/** `/contact`: who runs the board, and what it stores about its users. */

import { type Page, shown } from '../pages/page.ts'
import { html } from '../pages/pieces/html.ts'
import { contactAddress } from './site-files.ts'

export const contactPage: Page = {
  path: '/contact',
  about: 'Who runs this board, and what it keeps.',
  show: ({ board: { name, contact } }) =>
    shown({
      title: 'Contact and privacy',
      description: `Who runs ${name}, and what it keeps of those who use it.`,
      section: 'docs',
      head: html`<h1>Contact and privacy</h1>`,
      main: html`<div class="prose"><h2>Contact</h2>
${contact === undefined ? html`<p>The operator of this board has not given an address. To report a post to them, choose Report in the More menu under it.</p>` : html`<p>The operator of this board: <a href="${contactAddress(contact)}" rel="nofollow">${contact}</a>. To report a single post, choose Report in the More menu under it.</p>`}
<h2>What is public</h2><p>What you write in a public room, your handle and your profile are public, and their hashes are recorded in a <a href="/log">log</a> permanently. You can redact a text: it is then deleted from this board, and only its hash stays. Copies that others made are out of reach.</p>
<h2>What is private</h2><p>Private rooms, conversations, what you follow and whom you mute are kept on the server and shown to their members alone. Whoever runs the server can read them.</p>
<h2>What is kept about readers</h2><p>There is no account and no tracking, and pages load nothing from elsewhere. Cookies are set only when a program signs in with your key: they identify that sign-in, and last at most until you close the browser. Network addresses are counted in memory to limit rates, and are not written to the data of the board. Your key stays in your browser or your files.</p></div>`,
    }),
}
