/** Texts that pass through the rendering thread: what comes back, and what happens when one never would. */

import { afterEach, expect, test } from 'vitest'
import { systemClock } from '../../../src/clock.ts'
import { PageTexts, pageHtmlCharsMax, pageNodesMax } from '../../../src/pages/page-texts.ts'
import type { Html } from '../../../src/pages/pieces/html.ts'
import { nodesIn, type RenderItem, rendered } from '../../../src/pages/pieces/rendered.ts'
import { type Costed, inlineNodesMax, type Rendered, Renderer } from '../../../src/pages/renderer.ts'
import { machine } from '../../../src/platform.ts'

const whole = '/e/0123'
const costed = (item: RenderItem): Costed => ({ item, nodes: nodesIn(item) })
const markdown = (text: string) => costed({ kind: 'markdown', text, whole })
const plain = (text: string) => costed({ kind: 'text', text, whole })
/** A comparison without the bound that pages set: it would take hours. */
const endless = (n: number): Costed => {
  const lines = (letter: string) =>
    Array.from({ length: 12_000 }, (_, at) => letter + ((at * 7_919) % 12_007)).join('\n')
  return {
    item: { kind: 'diff', before: `${n}\n${lines('')}`, text: lines('0'), whole, changesMax: 1e9 },
    nodes: 1_000,
  }
}
const textOf = (made: Rendered | undefined) => (made as Html).text

let renderer = new Renderer({ startPool: machine.startPool, timers: systemClock })
afterEach(async () => {
  await renderer.close()
  renderer = new Renderer({ startPool: machine.startPool, timers: systemClock })
})

test('texts come back as the same HTML whichever thread made it, in their order', async () => {
  const items = [
    plain('@ada see http://a.example/'),
    markdown('# Title\n\n| a | b |\n|---|---|\n| 1 | 2 |'),
    plain('@ab '.repeat(2 * inlineNodesMax)),
    costed({ kind: 'verbatim', text: '<b>@ada</b>', whole }),
    costed({ kind: 'diff', before: 'one two', text: 'one three', whole, changesMax: 100 }),
  ]
  const made = await renderer.render(items, 'a')
  const here = await Promise.all(items.map(({ item }) => rendered(item)))
  expect(made.map(textOf)).toEqual(here.map(({ text }) => text))
})

test('a text is rendered once, whoever requests it and however often', async () => {
  const heavy = () => [markdown('[a](http://b.example/) '.repeat(600))]
  const [first, second] = await Promise.all([renderer.render(heavy(), 'a'), renderer.render(heavy(), 'b')])
  const [third] = await renderer.render(heavy(), 'c')
  expect(second[0]).toBe(first[0])
  expect(third).toBe(first[0])
})

test('a text that takes too long is given up, and the thread is replaced: all others are rendered', async () => {
  const reports: string[] = []
  renderer = new Renderer({
    startPool: machine.startPool,
    timers: systemClock,
    deadlineMs: 400,
    report: (event) => reports.push(event),
  })
  const asked = [markdown('*before*'), endless(1), markdown('*after*')]
  const made = await renderer.render(asked, 'a')
  expect(made[1]).toBe('slow')
  expect([made[0], made[2]].map(textOf)).toEqual(['<p><em>before</em></p>\n', '<p><em>after</em></p>\n'])
  const attempts = reports.length
  // It is known by now: nobody waits for it again.
  expect(await renderer.render(asked, 'b')).toEqual(made)
  expect(reports).toHaveLength(attempts)
  expect(textOf((await renderer.render([markdown('*later*')], 'c'))[0])).toBe('<p><em>later</em></p>\n')
})

test('one network gets a part of the queue, and everybody else is served', async () => {
  renderer = new Renderer({ startPool: machine.startPool, timers: systemClock, deadlineMs: 1_000 })
  const blocking = renderer.render([endless(1)], 'greedy')
  const heavy = (n: number) => plain(`${n} ${'@ab '.repeat(1_990)}`)
  const greedy = await Promise.all([
    ...Array.from({ length: 30 }, (_, n) => renderer.render([heavy(n)], 'greedy')),
    renderer.render([heavy(1_000)], 'other'),
    blocking,
  ])
  const refused = greedy.filter(([made]) => made === 'busy')
  expect(refused.length).toBeGreaterThan(10)
  expect(greedy.slice(0, 10).every(([made]) => made !== 'busy' && made !== 'slow')).toBe(true)
  expect(textOf(greedy[30]![0])).toContain('@ab')
  // A text that found no room may be rendered later.
  expect(textOf((await renderer.render([heavy(29)], 'greedy'))[0])).toContain('@ab')
})

test('a caller that waits when the renderer is closed gets an answer', async () => {
  const waiting = renderer.render([endless(1)], 'a')
  await renderer.close()
  expect(await waiting).toEqual(['busy'])
  expect(await renderer.render([markdown('*a*')], 'a')).toEqual(['busy'])
})

test('a page holds a bounded number of texts, its subject first, and shows the rest in part', async () => {
  const texts = new PageTexts(
    (items) => renderer.render(items, 'a'),
    () => {},
  )
  const item = (n: number): RenderItem => ({ kind: 'text', text: `${n} ${'\u200b\u200e'.repeat(3_000)}`, whole })
  const shown = await Promise.all(Array.from({ length: 100 }, (_, n) => texts.show(item(n), n === 99)))
  const isPart = ({ text }: Html) => text.includes('Shown in part')
  expect(isPart(shown[99]!)).toBe(false)
  expect(isPart(shown[0]!)).toBe(false)
  expect(isPart(shown[98]!)).toBe(true)
  const chars = shown.reduce((sum, { text }) => sum + text.length, 0)
  expect(chars).toBeLessThan(pageHtmlCharsMax + 100 * 500)
})

test('a page whose texts would cost more than a page may requests no more of them', async () => {
  const asked: Costed[] = []
  const texts = new PageTexts(
    (items) => {
      asked.push(...items)
      return renderer.render(items, 'a')
    },
    () => {},
  )
  await Promise.all(
    Array.from({ length: 100 }, (_, n) =>
      texts.show({ kind: 'text', text: `${n} ${'@ab '.repeat(1_000)}`, whole }, false),
    ),
  )
  const nodes = asked.reduce((sum, each) => sum + each.nodes, 0)
  expect(nodes).toBeLessThanOrEqual(pageNodesMax)
  expect(nodes).toBeGreaterThan(pageNodesMax / 2)
})

test('a page that shows a text in part because the board was busy is not cached for long', async () => {
  let isBusy = true
  let told = 0
  const texts = new PageTexts(
    async (items) => (isBusy ? items.map(() => 'busy' as const) : renderer.render(items, 'a')),
    () => told++,
  )
  const item: RenderItem = { kind: 'text', text: 'plain words', whole }
  expect((await texts.show(item, true)).text).toMatch(/plain words.*Shown in part. The board is busy/s)
  expect(told).toBe(1)
  isBusy = false
  expect((await texts.show(item, true)).text).toBe('<p class="text" dir="auto">plain words</p>')
  expect(told).toBe(1)
})
