/** What a list of threads says on a page that has none. */
import { expect, test } from 'vitest'
import { threadRows } from '../../../src/threads/thread-rows.ts'

test('a page that ended early says that the list continues, and only an empty list that there are no threads', () => {
  const none = 'There are no threads here yet.'
  expect(threadRows([], { hasMore: false, none }).text).toContain(none)
  const early = threadRows([], { hasMore: true, none }).text
  expect(early).not.toContain(none)
  expect(early).toContain('continues on the next page')
})
