/** Feeds of a room (its newest threads), and of a thread and an identity (their newest posts). */

import { type Feed, feedEntriesMax, feedPages, postEntry, sourced } from '../pages/feed.ts'
import type { Ask } from '../pages/page.ts'
import { nameOf } from '../pages/pieces/person.ts'

async function ofRoom(ask: Ask, { room = '' }: Readonly<Record<string, string>>): Promise<Feed> {
  const { threads } = await ask.read('threads.list', { room, order: 'new', limit: feedEntriesMax })
  return {
    title: `${room} on ${new URL(ask.board.address).host}`,
    entries: threads.map(({ thread, title, excerpt, created_at, updated_at, author, page, source }) => ({
      id: thread,
      title,
      text: sourced(excerpt ?? '', source),
      created: created_at,
      updated: updated_at,
      author,
      tags: [room, ...(page === 'main' ? [] : [page])],
    })),
  }
}

async function ofThread(ask: Ask, { event_id = '' }: Readonly<Record<string, string>>): Promise<Feed> {
  const { title, events } = await ask.read('thread.get', { event_id, order: 'desc', limit: feedEntriesMax })
  return { title, entries: events.filter(({ hidden }) => !hidden).map(postEntry) }
}

async function ofIdentity(ask: Ask, { identity = '' }: Readonly<Record<string, string>>): Promise<Feed> {
  const { identity: who } = await ask.read('identity.get', { target: identity })
  const { events } = await ask.read('identity.events', { target: who.id, limit: feedEntriesMax })
  return { title: `${nameOf(who)} on ${new URL(ask.board.address).host}`, entries: events.map(postEntry) }
}

export const threadFeeds = [
  ...feedPages('/room/{room}', 'The newest threads of a room', ofRoom),
  ...feedPages('/e/{event_id}', 'The newest posts of a thread', ofThread),
  ...feedPages('/i/{identity}', 'The newest posts of an identity', ofIdentity),
]
