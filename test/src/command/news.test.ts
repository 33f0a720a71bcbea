import { expect, test } from 'vitest'
import { News } from '../../../src/command/news.ts'

test('an answer made between a change and the head that covers it is not kept as if it were newer than both', () => {
  const news = new News()
  const head = (size: number) => ({ size, checkpoint: `of ${size}` })
  news.noteChange('lobby', 7)
  news.noteHead(head(5), 7)
  expect(news.settled).toBe(7)
  // The feed tells of the next change before the log's own word has come.
  news.noteChange('lobby', 8)
  const keptFor = news.settled
  expect(news.newestChange(undefined)).toBeGreaterThan(keptFor)
  news.noteHead(head(6), 8)
  expect(news.head.size).toBe(6)
  expect(news.settled).toBe(8)
})
