import { expect, test } from 'vitest'
import { type Ready, ReadyAnswers } from '../../../src/http/answers.ts'

const answer = (text: string, change = 1): Ready => ({
  body: Buffer.from(text),
  etag: '"tag"',
  file: undefined,
  room: 'lobby',
  change,
  until: 0,
})
const now = 1_800_000_000
const find = (answers: ReadyAnswers, url: string, newest = 1) => answers.find(url, () => newest, now)

test('an answer is cached from the second request for its address on', () => {
  const answers = new ReadyAnswers(1_000_000)
  answers.keep('/room/lobby', answer('a'))
  expect(find(answers, '/room/lobby')).toBeUndefined()
  const second = answer('a')
  answers.keep('/room/lobby', second)
  expect(find(answers, '/room/lobby')).toEqual(second)
})

test('an address whose cached answer is outdated by a change is cached again immediately', () => {
  const answers = new ReadyAnswers(1_000_000)
  answers.keep('/room/lobby', answer('a'))
  answers.keep('/room/lobby', answer('a'))
  expect(find(answers, '/room/lobby', 2)).toBeUndefined()
  const newer = answer('b', 2)
  answers.keep('/room/lobby', newer)
  expect(find(answers, '/room/lobby', 2)).toEqual(newer)
})

test('a crawler that requests each address once evicts nothing', () => {
  const answers = new ReadyAnswers(20_000)
  const hot = answer('hot')
  answers.keep('/', answer('hot'))
  answers.keep('/', hot)
  for (let page = 0; page < 5_000; page++) answers.keep(`/e/${page}`, answer('x'.repeat(1_000)))
  expect(find(answers, '/')).toEqual(hot)
})

test('cached answers never exceed their byte limit: the least recently used is evicted', () => {
  const answers = new ReadyAnswers(20_000)
  for (const page of [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]) {
    for (const _ of [1, 2]) answers.keep(`/${page}`, answer('x'.repeat(1_000)))
    expect(find(answers, '/0')).toBeDefined()
  }
  const left = Array.from({ length: 16 }, (_, page) => page).filter((page) => find(answers, `/${page}`) !== undefined)
  expect(left).toEqual([0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15])
})
