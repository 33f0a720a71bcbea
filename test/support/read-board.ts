/** The public read model of a stopped board, opened from its files as the feed's thread opens it. */
import { Feed } from '../../actors/feed.ts'
import { logDirectory, shardDirectory } from '../../src/board-directory.ts'
import { CursorSealer } from '../../src/format/cursor.ts'
import type { ReadContext } from '../../src/reads/read.ts'
import { Journal, JournalReader } from '../../storage/journal.ts'
import { machineDisk as disk } from '../../storage/machine-disk.ts'

/** `now`: Unix seconds. */
export function readBoard(directory: string, shards: number, now: number): ReadContext {
  const journal = Journal.open({ disk, directory: logDirectory(directory) })
  const through = journal.nextSeq - 1
  journal.close()
  const feed = new Feed({
    log: JournalReader.open(disk, logDirectory(directory)),
    kept: undefined,
    leaf: () => {
      throw new Error('there is no tree file here')
    },
    shards: Array.from({ length: shards }, (_, shard) => JournalReader.open(disk, shardDirectory(directory, shard))),
    onRecord: () => {},
  })
  feed.follow(through)
  const { state } = feed
  const { board } = state
  return {
    state,
    board,
    body: (slot) => feed.body(board.events.shard(slot), board.events.place(slot)),
    prefetch: (slots) => feed.prefetch(slots),
    frame: (shard, seq) => feed.body(shard, seq),
    blobFile: () => undefined,
    cursors: new CursorSealer(Buffer.alloc(32)),
    generation: '',
    serviceId: '',
    handleOf: (identity) => board.authors.get(identity)?.handle,
    now: () => now,
    visibility: 'public',
  }
}
