/** After a start that replayed many records, snapshots are written in the background: the next start is short, even after a kill. */
import { readdirSync } from 'node:fs'
import { expect, test, vi } from 'vitest'
import { feedSnapshotsDirectory, shardDirectory, shardSnapshotsDirectory } from '../../src/board-directory.ts'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { Client, person } from '../support/client.ts'
import { patience } from '../support/patience.ts'
import { integrate, writePosts } from '../support/posts-on-disk.ts'

const posts = 201_000

/** The last frame that it has. */
const newestSnapshot = (place: string) => Math.max(...readdirSync(place).map((name) => Number.parseInt(name, 10) || 0))

/** As the shard uses them for decisions, and as they are listed. */
async function roomsOf(board: Board): Promise<unknown> {
  const client = await Client.of(board)
  const { data } = await client.get('/api/rooms?limit=200')
  const again = await client.command(person('ada'), { operation: 'room.create', room: 'reviews' })
  client.close()
  return [(data.rooms as unknown as { name: string }[]).map(({ name }) => name).sort(), again.status, again.code]
}

test('without a post or a stop, shard and feed have a snapshot soon after it, of the same board', async () => {
  const directory = boardDirectory()
  writePosts({ directory, posts, textBytes: 40 })
  integrate({ directory, posts })
  const places = [shardSnapshotsDirectory(shardDirectory(directory, 0)), feedSnapshotsDirectory(directory)]
  const found = () => places.map((place) => readdirSync(place).filter((name) => name.endsWith('.snapshot')).length)
  const board = await startBoard({ directory })
  await vi.waitFor(() => expect(found()).toEqual([1, 1]), patience)
  // Including the first rooms, which the start created after the posts and their room.
  expect(newestSnapshot(places[0]!)).toBeGreaterThan(posts + 1)
  const rooms = await roomsOf(board)
  await board.kill()
  const next = await startBoard({ directory })
  const figures = await (await fetch(new URL('/metrics', next.address))).text()
  expect(figures).toContain(`broadside_events ${posts}\n`)
  expect(await roomsOf(next)).toEqual(rooms)
  await next.stop()
  expect(next.lines.filter((line) => line.includes('"replaying"'))).toEqual([])
})
