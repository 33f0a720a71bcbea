/** A start that read very many records again keeps snapshots beside its work: the next one is short, even after a kill. */
import { readdirSync } from 'node:fs'
import { expect, test, vi } from 'vitest'
import { feedSnapshotsDirectory, shardDirectory, shardSnapshotsDirectory } from '../../src/board-directory.ts'
import { boardDirectory, startBoard } from '../support/board-process.ts'
import { patience } from '../support/patience.ts'
import { integrate, writePosts } from '../support/posts-on-disk.ts'

const posts = 201_000

test('without a post or a stop, shard and feed have one soon after it', async () => {
  const directory = boardDirectory()
  writePosts({ directory, posts, textBytes: 40 })
  integrate({ directory, posts })
  const places = [shardSnapshotsDirectory(shardDirectory(directory, 0)), feedSnapshotsDirectory(directory)]
  const found = () => places.map((place) => readdirSync(place).filter((name) => name.endsWith('.snapshot')).length)
  const board = await startBoard({ directory })
  await vi.waitFor(() => expect(found()).toEqual([1, 1]), patience)
  await board.kill()
  const next = await startBoard({ directory })
  const figures = await (await fetch(new URL('/metrics', next.address))).text()
  expect(figures).toContain(`broadside_events ${posts}\n`)
  await next.stop()
  expect(next.lines.filter((line) => line.includes('"replaying"'))).toEqual([])
})
