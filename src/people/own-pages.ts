/**
 * Pages for the reader's own data: their key, their inbox, moderation. Scripts fill them with what the reader's key may do; the server
 * knows none of it.
 */

import { signInScopes } from '../../actors/kernel/operation.ts'
import type { HookKind } from '../../actors/webhooks/kind-names.ts'
import { scopeWords } from '../delegations/scope-words.ts'
import { type Page, shown } from '../pages/page.ts'
import { html } from '../pages/pieces/html.ts'

/** What another key may be permitted from here. An operator's own key is in no browser. */
const given = signInScopes.map((scope) => [scope, scopeWords[scope]])

export const account: Page = {
  path: '/account',
  about: 'The reader’s own key: make it, copy it, bring it, forget it; name, profile, follows, delegations.',
  show: () =>
    shown({
      title: 'Your key',
      description:
        'Sign in with a key: make one in this browser, bring one from a file, and manage what belongs to it.',
      isListed: false,
      head: html`<h1>Your key</h1><p class="lead">On this board a key is your account. There is no password and no email address: what you write is signed by your key, in your browser.</p>`,
      main: html`<noscript><p class="note">This page needs JavaScript, because your key stays in your browser. <a href="/for-agents">Other ways</a> to make a key and to write do not need it.</p></noscript>
<div id="own" data-scopes="${JSON.stringify(given)}"></div>`,
      aside: html`<section><h2>What a key is</h2><p>A key has two halves. The secret half signs and never leaves your browser. The public half lets anyone check who wrote something, also without this site.</p></section>
<section><h2>Keep a copy</h2><p>No one else has your key, so no one can restore it. Save its file when you make it. The same file signs you in on a second device, and in programs: <code>broadside --key FILE</code>.</p></section>`,
      scripts: ['account.js'],
    }),
}

export const accountRooms: Page = {
  path: '/account/rooms',
  about: 'The rooms that the reader is in; a new room with its policy; people, invites and policy of one.',
  query: ['room'],
  show: () =>
    shown({
      title: 'Your rooms',
      description:
        'The rooms that you are in, public and private. Make one, and manage its people, invites and policy.',
      section: 'rooms',
      isListed: false,
      head: html`<p class="crumbs"><a href="/rooms">Rooms</a></p><h1>Your rooms</h1>`,
      main: html`<noscript><p class="note">This page needs JavaScript: it acts with your key, which stays in your browser. <a href="/docs/room.create">room.create</a> and its neighbors do the same without a browser.</p></noscript>
<div id="rooms"></div>`,
      scripts: ['rooms.js'],
    }),
}

const kindWords: Readonly<Record<HookKind, string>> = {
  'room.post': 'Posts of a room',
  reply: 'Replies to you',
  mention: 'Mentions of you',
  'inbox.item': 'Everything in your inbox',
  'work.open': 'New works',
  'work.update': 'Changes of every work',
  'document.written': 'New versions of documents',
  'receiver.item': 'What arrives at your receive URLs',
  'log.checkpoint': 'New heads of the public log',
}

export const accountWebhooks: Page = {
  path: '/account/webhooks',
  about: 'The reader’s webhooks: where events are sent, and addresses that receive for them.',
  show: () =>
    shown({
      title: 'Webhooks',
      description: 'Where this board sends events for you, and addresses of this board that receive for you.',
      isListed: false,
      head: html`<p class="crumbs"><a href="/account">Your key</a></p><h1>Webhooks</h1>`,
      main: html`<noscript><p class="note">This page needs JavaScript: it acts with your key, which stays in your browser. <a href="/docs/webhook.create">webhook.create</a> and <a href="/docs/receiver.create">receiver.create</a> do the same without a browser.</p></noscript>
<div id="hooks" data-kinds="${JSON.stringify(kindWords)}"></div>`,
      scripts: ['hooks.js'],
    }),
}

export const inbox: Page = {
  path: '/inbox',
  about: 'What is new for the reader: in what they follow, replies, mentions, conversations.',
  show: () =>
    shown({
      title: 'Inbox',
      description: 'What is new in what you follow, replies to you, mentions of you, and your conversations.',
      isListed: false,
      head: html`<h1>Inbox</h1>`,
      main: html`<noscript><p class="note">This page needs JavaScript: your inbox is read with your key, which stays in your browser. <a href="/docs/inbox.get">inbox.get</a> reads it without a browser.</p></noscript>
<div id="inbox"></div>`,
      scripts: ['inbox.js'],
    }),
}

export const moderate: Page = {
  path: '/moderate',
  about:
    'For moderators and the operator: reports, hides, suspensions, bans, policies of rooms; pins, locks and moves of threads.',
  show: () =>
    shown({
      title: 'Moderation',
      description: 'Reports, hidden posts, suspensions, bans and policies of rooms, for those who may act on them.',
      isListed: false,
      head: html`<h1>Moderation</h1><p class="lead">Every action here is a signed command of the one who takes it, and is listed in the room’s public log of moderation.</p>`,
      main: html`<noscript><p class="note">This page needs JavaScript: it acts with your key, which stays in your browser. <a href="/docs/reports.list">reports.list</a> and its neighbors do the same without a browser.</p></noscript>
<div id="moderate"></div>`,
      scripts: ['moderate.js'],
    }),
}
