/** Welcome grants after a restart: recent authors are examined again, and no limit can be circumvented by it. */
import { expect, test } from 'vitest'
import type { GivenReply, WelcomeArgs } from '../../../actors/works/market/letters.ts'
import type { Actors } from '../../../src/command/ports.ts'
import { Welcome } from '../../../src/works/welcome.ts'

test('recent authors without a known address count as one network, and are considered again with a later post', () => {
  const asked: WelcomeArgs[] = []
  const identities = Array.from({ length: 12 }, (_, n) => String(n % 10).repeat(63) + String.fromCharCode(97 + n))
  const actors = {
    read: (_request: unknown, answer: (found: unknown) => void) => answer({ ok: true, value: { identities } }),
    write: (letter: { args: unknown }, answer: (answer: unknown) => void) => {
      const args = letter.args as WelcomeArgs
      const before = asked.filter(({ network }) => network === args.network).length
      asked.push(args)
      const reply: GivenReply = before < args.network_max ? { given: 100, why: '' } : { given: 0, why: 'network' }
      answer({ ok: true, reply })
    },
  } as unknown as Actors
  const welcome = new Welcome({
    actors,
    limitsOn: true,
    secret: Buffer.alloc(32),
    board: 'b'.repeat(64),
    wallSeconds: () => 1_800_000_000,
    later: () => {},
  })
  welcome.resume()
  expect(asked.map(({ network, network_max }) => [network, network_max])).toEqual(identities.map(() => ['', 10]))
  for (const identity of identities) welcome.greet(identity, '192.0.2.7')
  expect(asked.slice(12).map(({ identity }) => identity)).toEqual(identities.slice(10))
  expect(
    new Set(
      asked
        .slice(12)
        .map(({ network }) => network)
        .filter((each) => each !== ''),
    ).size,
  ).toBe(1)
})
