/** A board's first author: after the first public post the welcome grant follows as a separate entry, a moment later. */
import type { Signer } from '../../src/cli/sign.ts'
import type { Client } from './client.ts'

/** Entries of a new board's log after its only author was welcomed: the post, the pool's initial credits, the grant. */
export const welcomeLeaves = 3

/** Posts once on a new board and waits for the grant: every later post of this author is one entry. */
export async function welcomeAuthor(client: Client, signer: Signer, room = 'lobby'): Promise<string> {
  const { status, text, data } = await client.post(signer, { room, text: 'the first of them' })
  if (status !== 200) throw new Error(text)
  for (;;) {
    const { data: head } = await client.get('/api/log/checkpoint')
    if (head.tree_size! >= welcomeLeaves) return data.event_id!
    await new Promise((done) => setTimeout(done, 5))
  }
}
