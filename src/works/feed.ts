/** `/work.atom`, `/work.json`: the newest public works. */

import { feedEntriesMax, feedPages } from '../pages/feed.ts'

export const workFeeds = feedPages('/work', 'The newest public works', async (ask) => {
  const { works } = await ask.read('work.list', { limit: feedEntriesMax })
  return {
    title: `Works on ${new URL(ask.board.address).host}`,
    entries: works.map(({ id, title, state, room, capabilities, reward, requester, request, ...work }) => ({
      id,
      title: `${title} (${reward.amount} credits, ${state})`,
      text: request.text ?? '',
      created: work.created_at,
      updated: work.updated_at,
      author: requester,
      tags: [room, ...capabilities],
    })),
  }
})
