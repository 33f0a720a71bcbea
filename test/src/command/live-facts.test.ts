import { expect, test } from 'vitest'
import { registryName } from '../../../actors/records/record.ts'
import { shardOf } from '../../../actors/shard.ts'
import { systemClock } from '../../../src/clock.ts'
import { LiveFacts } from '../../../src/command/live-facts.ts'

test('an answer made between a change and the head that covers it is not cached as if it were newer than both', () => {
  const news = new LiveFacts(systemClock)
  const head = (size: number) => ({ size, checkpoint: `of ${size}` })
  news.noteChange('lobby', 7)
  news.noteHead(head(5), 7)
  expect(news.settled).toBe(7)
  // The feed reports the next change before the log has reported.
  news.noteChange('lobby', 8)
  const keptFor = news.settled
  expect(news.newestChange(undefined)).toBeGreaterThan(keptFor)
  news.noteHead(head(6), 8)
  expect(news.head.size).toBe(6)
  expect(news.settled).toBe(8)
})

test('only a restart of the registry’s shard makes it uncertain which keys act for whom', async () => {
  const news = new LiveFacts(systemClock)
  const asked: (() => void)[] = []
  const begun = news.delegates.begin((tell) => void asked.push(() => tell([])))
  asked.shift()!()
  await begun
  const shards = 4
  const registry = shardOf(registryName, shards)
  for (let shard = 0; shard < shards; shard++) {
    news.shardRestarted(shard, shards)
    expect(news.delegates.isStale).toBe(shard === registry)
    asked.shift()?.()
    expect(news.delegates.isStale).toBe(false)
  }
})
