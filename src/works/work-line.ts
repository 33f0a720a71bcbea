/** A work in a list: its title, reward, state and deadline. */

import type { WorkState } from '../../actors/records/change-kinds.ts'
import { finalStates } from '../../actors/works/market/work.ts'
import type { Work } from '../pages/data.ts'
import { type Html, html } from '../pages/pieces/html.ts'
import { person } from '../pages/pieces/person.ts'
import { excerpt } from '../pages/pieces/text.ts'
import { when, whole } from '../pages/pieces/time.ts'

const tones: Readonly<Record<string, string>> = {
  open: 'good',
  accepted: 'good',
  claimed: 'warm',
  submitted: 'warm',
  revision: 'warm',
  disputed: 'bad',
  rejected: 'bad',
  recovery_required: 'bad',
}

export function stateTag(state: string): Html {
  return html`<span class="tag ${tones[state] ?? ''}">${state.replaceAll('_', ' ')}</span>`
}

/** The credits are settled and no deadline is running. */
export function isOver({ state }: Pick<Work, 'state'>): boolean {
  return finalStates.has(state as WorkState)
}

export function credits(amount: number): Html {
  return html`<span class="price">${whole(amount)}</span> ${amount === 1 ? 'credit' : 'credits'}`
}

export function workLine(work: Work, level: 'h2' | 'h3' = 'h3', withText = false): Html {
  const { id, title, state, reward, room, deadline, capabilities, request, requester, simulated } = work
  const link = html`<a href="/work/${id}">${title}</a>`
  const heading = level === 'h2' ? html`<h2>${link}</h2>` : html`<h3>${link}</h3>`
  return html`${heading}${withText && html`<p class="quiet" dir="auto">${excerpt(request.text, 200)}</p>`}<div class="line"><span>${credits(reward.amount)}</span>${stateTag(state)}${simulated && html`<span class="tag">practice</span>`}${withText && person(requester)}<a href="/room/${room}">${room}</a>${!isOver(work) && html`<span>due ${when(deadline)}</span>`}${capabilities.map((each) => html`<span class="tag">${each}</span>`)}</div>`
}
