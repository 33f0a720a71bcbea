/** The simulator itself: a seed gives the same run, past findings are not found again, and a failure is shrunk. */
import { readFileSync } from 'node:fs'
import { afterAll, expect, test } from 'vitest'
import { setLogLevel } from '../../src/observe.ts'
import { mutations } from './mutations.ts'
import { shrink } from './shrink.ts'
import { type Run, runWorld, stepsEach } from './world.ts'

// Boards fail here on purpose.
setLogLevel('silent')
afterAll(() => setLogLevel('info'))

const off: ReadonlySet<string> = new Set()
const known = JSON.parse(readFileSync(new URL('found.json', import.meta.url), 'utf8')) as readonly Known[]
type Known = { readonly seed: string; readonly what: string; readonly layout?: Run['layout'] }

test.each([
  [1, { placement: 'threads', shards: 1 }],
  [2, { placement: 'threads', shards: 2 }],
  [3, { placement: 'threads', shards: 2, ack: 'quorum' }],
  [4, { placement: 'back', shards: 1, ack: 'copy' }],
] as const)('the same seed gives the same run, to the last answer: %i', async (seed, layout) => {
  const run: Run = { seed: String(seed), steps: 120, off, layout }
  const first = await runWorld(run)
  expect(first.found).toBeUndefined()
  const again = await runWorld(run)
  expect([again.trace, again.story, again.counts]).toEqual([first.trace, first.story, first.counts])
})

test.each(known)('the bug that seed $seed found is fixed: $what', async ({ seed, layout }) => {
  const { found } = await runWorld({ seed, steps: stepsEach, off, ...(layout === undefined ? {} : { layout }) })
  expect(found).toBeUndefined()
})

test('a failure is shrunk by leaving out steps that it does not need', async () => {
  const needed = [17, 18, 93]
  const again = async ({ steps, only }: Run) => {
    const isThere = needed.every((step) => step <= steps && only?.has(step) !== false)
    return isThere ? { found: { step: 93, message: 'it fails', stack: '' } } : {}
  }
  const run: Run = { seed: '1', steps: 200, off }
  const { steps, runs } = await shrink(run, await again(run), { again, runsMax: 200 })
  expect(steps).toEqual(needed)
  expect(runs).toBeLessThan(100)
})

test('every mutation fits its file in exactly one place', () => {
  for (const { name, file, from, to } of mutations) {
    const text = readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8')
    expect(text.split(from).length - 1, name).toBe(1)
    expect(to).not.toBe(from)
  }
  expect(new Set(mutations.map(({ name }) => name)).size).toBe(mutations.length)
})
