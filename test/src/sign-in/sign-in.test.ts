/** Concurrent answers to one sign-in: only a valid one counts, and no other takes its key away. */

import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { opensslSigner } from '../../../src/cli/sign.ts'
import type { Delegate } from '../../../src/command/delegates.ts'
import type { Reply } from '../../../src/format/reply.ts'
import { commandId } from '../../../src/format/signing.ts'
import { machine } from '../../../src/platform.ts'
import { type Asked, nameShown, SignIns } from '../../../src/sign-in/sign-in.ts'
import { SignInKeys } from '../../../src/sign-in/sign-in-keys.ts'
import { signInPage } from '../../../src/sign-in/sign-in-page.ts'
import { machineDisk } from '../../../storage/machine-disk.ts'
import { scratchDirectory } from '../../support/scratch.ts'

const asked: Asked = {
  uid: 'the-sign-in',
  clientId: 'c1',
  clientName: 'a test',
  redirectHost: 'client.example',
  scopes: ['board:read'],
}

/** A board that refuses an invalid signature immediately, and accepts a valid one a moment later. */
function signingIn() {
  const keys = new SignInKeys(machineDisk, join(scratchDirectory(), 'sign-in.keys'))
  const signer = opensslSigner(randomBytes(32))
  const made = new Map<string, Delegate>()
  let good = ''
  let delegation = ''
  const signIns = new SignIns({
    serviceId: 'bs-test',
    keys,
    wallSeconds: () => 1_790_000_000,
    random: machine.random,
    delegates: { find: (id) => made.get(id), isOver: () => false },
    front: {
      execute: (body, _door, respond) => {
        const { signature } = JSON.parse(String(body)) as { signature: string }
        const error = { code: 'bad_signature', message: 'the signature is not over these bytes' }
        if (signature !== good) return respond({ status: 400, body: JSON.stringify({ error }) } as Reply)
        made.set(delegation, { identity: signer.id } as Delegate)
        setImmediate(() => respond({ status: 200, body: '{}' } as Reply))
      },
    },
  })
  const challenge = Buffer.from(signIns.challenge(asked, signer.publicKey))
  good = signer.sign(challenge).toString('base64url')
  delegation = commandId(challenge).eventId
  const finish = (signature: string) =>
    signIns.finish(asked, { publicKey: signer.publicKey, signature, address: '127.0.0.1' })
  return { signIns, keys, finish, good, delegation, identity: signer.id }
}

test.each([
  ['behind', ['good', 'bad', 'bad']],
  ['before', ['bad', 'bad', 'good']],
  ['around', ['bad', 'good', 'bad']],
])('an invalid signature %s the valid one leaves the key of the sign-in', async (_where, order) => {
  const { signIns, keys, finish, good, delegation, identity } = signingIn()
  const answers = await Promise.all(order.map((each) => finish(each === 'good' ? good : each)))
  expect(answers[order.indexOf('good')]).toEqual({ ok: true, delegation, identity })
  expect(signIns.of(delegation)?.key.publicKey).toBe(keys.get(delegation)?.publicKey)
  expect(keys.count).toBe(1)
})

test('invalid signatures alone leave no key behind', async () => {
  const { keys, finish } = signingIn()
  const answers = await Promise.all([finish('bad'), finish('worse')])
  expect(answers.map(({ ok }) => ok)).toEqual([false, false])
  expect(keys.count).toBe(0)
})

test.each([
  [`${'x'.repeat(63)}\u{1f600}\u{1f600}`, `${'x'.repeat(63)}\u{1f600}`],
  ['half \ud83d of it', 'half \ufffd of it'],
  ['  two\nlines\u202e ', 'two lines'],
  [undefined, ''],
])('the name %j is shown, and signed, as whole characters of one line', (name, shown) => {
  expect(nameShown(name)).toBe(shown)
})

test('the page promises nothing that a scope contradicts: board:work can pay out credits', () => {
  const page = signInPage(
    { ...asked, scopes: ['board:work'] },
    { address: 'https://board.example', name: 'Broadside', isWeb: false },
  )
  expect(page).toContain('spend your credits on rewards')
  expect(page).not.toContain('send credits away')
})
