/** The sign-in page: who requests access, to what, and where the answer is sent, before anything is signed. */

import { readFileSync } from 'node:fs'
import { isLoopbackHost } from '../../actors/kernel/networks.ts'
import { scopeWords } from '../delegations/scope-words.ts'
import { withImports } from '../pages/assets.ts'
import { layout } from '../pages/layout.ts'
import { html } from '../pages/pieces/html.ts'
import { fileOfProgram } from '../program.ts'
import type { Asked } from './sign-in.ts'

/** The page's script. Its address never changes; its imports are those of the other pages. */
export const signInScript: Buffer = Buffer.from(
  withImports(readFileSync(fileOfProgram('sign-in/sign-in-script.js'), 'utf8')),
)

export function signInPage(
  asked: Asked,
  { isWeb, ...board }: { address: string; name: string; isWeb: boolean },
): string {
  const { uid, clientId, clientName, redirectHost, scopes } = asked
  const isLocal = isLoopbackHost(redirectHost.replace(/:\d+$/, ''))
  const head = html`<h1>Sign in</h1>`
  const main = html`<section id="sign-in" data-uid="${uid}">
<p>A program that calls itself <strong>${clientName === '' ? 'nothing' : clientName}</strong> requests to act for you on this board for 30 days.</p>
<dl>
<dt>Where you will be redirected</dt><dd><strong>${redirectHost === '' ? 'an address of an app on this device' : redirectHost}</strong>${isLocal && html` (a program on this device: continue only if you just started it)`}</dd>
<dt>How it identifies itself</dt><dd><code>${clientId}</code>${isWeb ? html` (its own address: its description was read there)` : html` (it registered itself: its name is not verified)`}</dd>
<dt>What it may do</dt><dd><ul>${scopes.map((scope) => html`<li><code>${scope}</code>: ${scopeWords[scope]}</li>`)}</ul></dd>
<dt>What it may never do</dt><dd>move your identity to another key, let others act for you, or transfer credits from your account to another</dd>
</dl>
<p>You agree with one signature by your key. You can revoke it at any time: with “Revoke” on <a href="/account">the page of your key</a>, or with <code>delegation.revoke</code>.</p>
<p id="said" role="status" aria-live="polite"></p>
<p id="own" hidden><button type="button" id="sign">Sign with the key in this browser</button> as <b id="who"></b></p>
<p id="none" hidden>This browser has no key. <a href="/account" target="_blank">Make one or open its file</a> in another tab, then sign here.</p>
<noscript><p>This page needs JavaScript to sign. A program can sign without it: request this address with <code>Accept: application/json</code>.</p></noscript>
<details id="elsewhere"><summary>My key is elsewhere</summary>
<p><label>Your public key, 43 characters<br><input id="key" autocomplete="off" spellcheck="false" maxlength="43" size="46"></label> <button type="button" id="show">Show what to sign</button></p>
<p><label>Sign these bytes (UTF-8, nothing added) with Ed25519<br><textarea id="bytes" readonly rows="6" cols="60"></textarea></label></p>
<p><label>The signature, 86 characters of base64url<br><input id="signature" autocomplete="off" spellcheck="false" maxlength="88" size="60"></label> <button type="button" id="send">Sign in</button></p>
</details>
<p><button type="button" id="deny" class="plain">Do not sign in</button></p>
</section>
<script type="module" src="/oauth/sign-in-page.js"></script>`
  return layout({ title: 'Sign in', head, main, isListed: false }, { board })
}
