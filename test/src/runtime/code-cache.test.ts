/** What a start keeps for the next one is used when it is whole, and else made again: a start never fails for it. */
import { readdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { madeOnce } from '../../../src/runtime/code-cache.ts'
import { scratchDirectory } from '../../support/scratch.ts'

/** A maker that counts, and the folder that it keeps in. */
function maker() {
  const folder = join(scratchDirectory(), 'kept')
  let calls = 0
  const make = (source: string) => {
    calls++
    return `made of ${source}: ä`
  }
  const once = (source: string, into = folder) => madeOnce(source, make, into)
  return { folder, once, calls: () => calls, files: () => readdirSync(folder).map((name) => join(folder, name)) }
}

test('what was made of a text is not made again, and of another text it is', () => {
  const { once, calls, files } = maker()
  expect([once('a'), once('a'), once('b'), once('a')]).toEqual([
    'made of a: ä',
    'made of a: ä',
    'made of b: ä',
    'made of a: ä',
  ])
  expect(calls()).toBe(2)
  expect(files()).toHaveLength(2)
})

test('a kept text that is cut off, changed or empty is made and kept again', () => {
  const { once, calls, files } = maker()
  once('a')
  const [path] = files()
  const whole = readFileSync(path!)
  const damages = [
    () => truncateSync(path!, whole.length - 1),
    () => truncateSync(path!, 10),
    () => writeFileSync(path!, ''),
    () => writeFileSync(path!, Buffer.alloc(whole.length)),
    () => writeFileSync(path!, whole.toString().replace('of a', 'of b')),
  ]
  damages.forEach((damage, index) => {
    damage()
    expect(once('a')).toBe('made of a: ä')
    expect(calls()).toBe(index + 2)
    expect(readFileSync(path!)).toEqual(whole)
  })
})

test('where nothing can be kept it is made each time', () => {
  const { once, calls } = maker()
  const file = join(scratchDirectory(), 'file')
  writeFileSync(file, '')
  expect([once('a', join(file, 'below')), once('a', join(file, 'below'))]).toEqual(['made of a: ä', 'made of a: ä'])
  expect(calls()).toBe(2)
})
