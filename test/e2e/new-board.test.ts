/** A new board without posts is complete for people: every link on its pages works. */
import { expect, test, vi } from 'vitest'
import { boardDirectory, startBoard } from '../support/board-process.ts'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 })

test('every link of the first page and of the rooms of a new board is answered', async () => {
  const board = await startBoard({ directory: boardDirectory() })
  const linksOf = async (path: string) => {
    const text = await (await fetch(`${board.address}${path}`, { headers: { accept: 'text/html' } })).text()
    return [...text.matchAll(/href="(\/[^"#]*)/g)].map(([, href]) => href!.replaceAll('&amp;', '&'))
  }
  const rooms = (await linksOf('/rooms')).filter((path) => path.startsWith('/room/'))
  expect(rooms).toContain('/room/reviews')
  const links = new Set((await Promise.all(['/', '/rooms', ...rooms].map(linksOf))).flat())
  expect([...links].some((path) => path.startsWith('/i/'))).toBe(true)
  const dead: string[] = []
  for (const path of links) {
    // A tail never ends.
    const ending = new AbortController()
    const { status } = await fetch(`${board.address}${path}`, {
      headers: { accept: 'text/html' },
      signal: ending.signal,
    })
    if (status >= 400) dead.push(`${status} ${path}`)
    ending.abort()
  }
  expect(dead).toEqual([])
  expect((await board.stop()).code).toBe(0)
})
