/** What the rules treat as advertising, and what they leave alone. */
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import fc from 'fast-check'
import { afterEach, expect, test } from 'vitest'
import { systemClock } from '../../../src/clock.ts'
import { judge } from '../../../src/moderation/advertising.ts'
import { httpClassifier, parseJudgement } from '../../../src/moderation/classifier.ts'
import {
  type Hidden,
  type Report,
  reasonOf,
  type Screened,
  Screening,
  ScreeningQueue,
} from '../../../src/moderation/screening.ts'

const note = (text: string, kind = 'note') => judge({ text, kind })

test.each([
  ['https://example.com/x', 'only-links'],
  ['  https://a.example  http://b.example/?q=1 … !! ', 'only-links'],
  ['[a](https://a.example) [b](https://b.example)', 'only-links'],
  ['![seen](https://a.example/x.png)', 'only-links'],
  ['[![seen](https://a.example/x.png)](https://b.example)', 'only-links'],
  ['[x]: https://a.example', 'only-links'],
  ['[look here][x], [x]\n\n[x]: <https://a.example>', 'only-links'],
  ['spam.example/buy-now', 'only-links'],
  ['a.example/x\n[more](www.b.example)', 'only-links'],
  ['[buy now](https://a.example) [use my code](https://b.example)', 'only-links'],
  ['Our newest product is here.', 'promotion-kind', 'promotion'],
  ['Sign up with https://shop.example/?ref=bob and use my referral code', 'referral'],
  ['Buy now! Limited time offer, 50% off and free shipping at https://shop.example', 'sales-words'],
  ['BUY NOW — limited offer, 20 % OFF, free trial, don’t miss it', 'sales-words'],
])('%s: %s', (text, rule, kind = 'note') => {
  const found = note(text, kind)
  expect(found.rule).toBe(rule)
  expect(found.score).toBeGreaterThanOrEqual(0.9)
})

test.each([
  'Hello from a signed key.',
  'I measured cache misses with https://example.com/bench?limit=50&sort=new: 12% fewer. Does anybody see the same?',
  'See https://www.rfc-editor.org/rfc/rfc9162 for the details',
  'See [the proofs](https://www.rfc-editor.org/rfc/rfc9162) for the details',
  'See [the proofs][1].\n\n[1]: https://www.rfc-editor.org/rfc/rfc9162',
  'It is in actors/rooms/room.ts, and/or in 1.5/2.0 of it',
  '[x] done, [ ] to do: https://example.com',
  '[note]: nothing but words, and https://example.com',
  'The referee asked for more data. Reference: https://example.com/paper?version=2',
  'Is there a free trial of that API? I could not find one.',
  'Done! It works!! Thanks!!!',
  'Порядок в журнале: сначала запись, затем подпись',
  '🌍',
])('left alone: %s', (text) => {
  expect(note(text).score).toBeLessThan(0.9)
})

test('a score is always between 0 and 1, has a rule when it is above 0, and depends only on the post', () => {
  const word = fc.constantFrom(
    'buy now',
    'https://a.example/?ref=1',
    '!!!',
    'use my code',
    '50% off',
    'hello',
    '\n',
    '🚀',
  )
  const text = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.array(word).map((words) => words.join(' ')),
  )
  fc.assert(
    fc.property(text, fc.constantFrom('note', 'promotion'), (each, kind) => {
      const found = judge({ text: each, kind })
      expect(found).toEqual(judge({ text: each, kind }))
      expect(found.score >= 0 && found.score <= 1).toBe(true)
      expect(found.rule === '').toBe(found.score === 0)
      expect(Buffer.byteLength(reasonOf(found.rule, found.words))).toBeLessThan(2_048)
    }),
  )
})

test('the longest texts of one repeated word are judged like any other', () => {
  for (const part of [
    'https://',
    'buy ',
    '?ref=',
    '!',
    'limited limited ',
    'earn up to $',
    '9% ',
    '[',
    '[a](',
    '[a]: ',
    'a.',
    '-a',
    'a.aa/',
  ]) {
    expect(note(part.repeat(Math.floor(32_768 / part.length))).score).toBeLessThanOrEqual(1)
  }
})

const servers: Server[] = []
afterEach(() => {
  for (const server of servers.splice(0)) server.close().closeAllConnections()
})

async function classifierAt(listener: RequestListener): Promise<string> {
  const server = createServer(listener)
  servers.push(server)
  await new Promise<void>((ready) => server.listen(0, '127.0.0.1', ready))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/judge`
}

const post: Screened = { id: 'a'.repeat(32), room: 'lobby', kind: 'note', text: 'x', isReply: false, at: 1 }

test('a classifier gets JSON, and its answer is the judgment', async () => {
  let asked = ''
  const url = await classifierAt((request, response) => {
    request.on('data', (chunk: Buffer) => {
      asked += chunk.toString()
    })
    request.on('end', () => response.end('{"score":0.5,"rule":"model","words":"it\\nlooks\\u202elike it"}'))
  })
  expect(await httpClassifier(url)(post)).toEqual({ score: 0.5, rule: 'model', words: 'it looks like it' })
  expect(JSON.parse(asked)).toEqual({
    schema: 1,
    event_id: post.id,
    room: 'lobby',
    kind: 'note',
    text: 'x',
    is_reply: false,
  })
})

test.each<[string, RequestListener]>([
  ['an error', (_, response) => response.writeHead(500).end('{"score":1}')],
  ['a redirect', (_, response) => response.writeHead(302, { location: '/other' }).end()],
  ['no JSON', (_, response) => response.end('<html>')],
  ['no score', (_, response) => response.end('{}')],
  ['more than it may', (_, response) => response.end(`{"score":1,"words":"${'x'.repeat(70_000)}"}`)],
  ['a broken connection', (_, response) => response.destroy()],
])('a classifier that answers %s judges nothing', async (_name, listener) => {
  await expect(httpClassifier(await classifierAt(listener))(post)).rejects.toThrow()
})

test('scores are numbers from 0 to 1 and nothing else', () => {
  for (const score of ['"1"', '1.01', '-0.1', 'null', '1e999', 'true']) {
    expect(() => parseJudgement(`{"score":${score}}`), score).toThrow()
  }
  expect(parseJudgement('{"score":1,"rule":5}')).toEqual({ score: 1, rule: 'classifier', words: '' })
})

/** A screening whose hides are recorded, and what it reports. */
function screeningOf(score: number | Error, answers: readonly Hidden[] = [{ ok: true }]) {
  const hides: string[] = []
  const reports: string[] = []
  let quiet = () => {}
  const report: Report = (_level, event) => {
    reports.push(event)
    quiet()
  }
  const screening = new ScreeningQueue(report)
  new Screening({
    queue: screening,
    soon: systemClock.soon,
    judge: () => {
      if (score instanceof Error) throw score
      return { score, rule: 'model', words: '' }
    },
    hide: (_, reason, done) => {
      hides.push(reason)
      done(answers[Math.min(hides.length, answers.length) - 1]!)
    },
    later: systemClock.later,
    report,
  })
  const reported = () =>
    new Promise<void>((done) => {
      quiet = done
    })
  return { screening, hides, reports, reported }
}

test('0.90 hides a post that begins a thread, 0.97 a reply, and the reason begins as documented', async () => {
  for (const [score, isReply] of [
    [0.9, false],
    [0.97, true],
  ] as const) {
    const { screening, hides, reports, reported } = screeningOf(score)
    const told = reported()
    screening.add({ ...post, isReply })
    await told
    expect(hides).toEqual([reasonOf('model', '')])
    expect(hides[0]).toMatch(/^Advertising: model/)
    expect(reports).toEqual(['screening.hidden'])
  }
  for (const [score, isReply] of [
    [0.89, false],
    [0.96, true],
  ] as const) {
    const { screening, hides, reported } = screeningOf(score)
    screening.add({ ...post, isReply })
    const marker = screeningOf(1)
    const told = marker.reported()
    marker.screening.add(post)
    await Promise.race([told, reported()])
    expect(hides).toEqual([])
  }
})

test('posts that cannot be judged stay and are reported; failed hides are reported; a busy board is retried', async () => {
  const broken = screeningOf(new Error('no answer'))
  const told = broken.reported()
  broken.screening.add(post)
  await told
  expect([broken.hides, broken.reports]).toEqual([[], ['screening.failed']])
  const kept = screeningOf(1, [{ ok: false, words: 'the room decided otherwise' }])
  const toldKept = kept.reported()
  kept.screening.add(post)
  await toldKept
  expect(kept.reports).toEqual(['screening.kept'])
  const busy = screeningOf(1, [{ ok: false, later: 0.01, words: 'busy' }, { ok: true }])
  const toldBusy = busy.reported()
  busy.screening.add(post)
  await toldBusy
  expect([busy.hides.length, busy.reports]).toEqual([2, ['screening.hidden']])
})

test('posts beyond the queue limit are not screened, and that is reported', () => {
  const { screening, reports } = screeningOf(0)
  for (let n = 0; n < 1_128; n++) screening.add(post)
  expect(new Set(reports)).toEqual(new Set(['screening.full']))
  expect(reports.length).toBe(104)
})
