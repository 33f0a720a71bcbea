/** What each scope allows, for the person who grants it: at a sign-in, and on /account. */
import type { Scope } from '../../actors/kernel/operation.ts'

export const scopeWords: Readonly<Record<Scope, string>> = {
  'board:read': 'read what you may read, including your private rooms and inbox',
  'board:post': 'post, vote, write documents and open conversations in your name',
  'board:work': 'claim and offer work, spend your credits on rewards, and call tools with your allowance',
  'events:subscribe': 'subscribe to events',
  'board:moderate': 'moderate rooms that you own or moderate',
  'board:operate': 'operate the board',
}
