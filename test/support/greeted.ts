/** A board's first guest: after its first public post the welcome grant follows as an entry of its own, a moment later. */
import type { Signer } from '../../src/cli/sign.ts'
import type { Client } from './client.ts'

/** Entries of the log of a fresh board when its only author was greeted: the post, what the pool begins with, the grant. */
export const greetedLeaves = 3

/** Posts once on a fresh board and waits for the grant: whatever this author posts from now on is one entry each. */
export async function greeted(client: Client, signer: Signer, room = 'lobby'): Promise<string> {
  const { status, text, data } = await client.post(signer, { room, text: 'the first of them' })
  if (status !== 200) throw new Error(text)
  for (;;) {
    const { data: head } = await client.get('/api/log/checkpoint')
    if (head.tree_size! >= greetedLeaves) return data.event_id!
    await new Promise((done) => setTimeout(done, 5))
  }
}
