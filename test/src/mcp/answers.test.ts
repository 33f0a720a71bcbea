/** What a client reads that shows its model the text of a result alone: whole characters, the way to the next page, what was asked for. */
import { expect, test } from 'vitest'
import { shortText } from '../../../src/mcp/answers.ts'

const events = (text: string) =>
  Array.from({ length: 50 }, (_, n) => ({
    event_id: `${n}`,
    text,
    signature: 'S',
    author: { id: 'a', public_key: 'K' },
  }))

test('wherever it is cut, no half of a character is left', () => {
  for (const shift of ['', 'x']) {
    const text = shortText({ text: `${shift}${'\u{1f600}'.repeat(4_000)}` })
    expect([text.isWellFormed(), text.length]).toEqual([true, expect.closeTo(6_040, -2)])
    expect(text).toMatch(/ … \[cut here: structuredContent has all\]$/)
  }
})

test('a page that is cut says first where it goes on, and leaves out what proves', () => {
  const text = shortText({ events: events('y'.repeat(400)), has_more: true, next_cursor: 'c1' })
  expect(text).toMatch(/^\{"has_more":true,"next_cursor":"c1","events":\[\{"event_id":"0"/)
  for (const name of ['signature', 'public_key']) expect(text).not.toContain(name)
})

test.each([
  [{ origin: 'o', checkpoint: 'a note' }, 'a note'],
  [{ identity: { id: 'i', public_key: 'the key' } }, 'the key'],
  [{ identity: 'i', delegation: 'by this' }, 'by this'],
])('what was asked for is shown: %j', (data, shown) => {
  expect(shortText(data)).toContain(shown)
})

test('a receipt beside it stays short', () => {
  expect(shortText({ event_id: 'e', receipt: { checkpoint: 'long', change: 7 } })).toBe(
    '{"event_id":"e","receipt":{"change":7}}',
  )
})
