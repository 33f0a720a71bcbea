/** Logging out: once it is confirmed it holds, whenever the board dies. */

import { join } from 'node:path'
import { expect, test } from 'vitest'
import { SignInKeys } from '../../../src/sign-in/sign-in-keys.ts'
import { machineDisk } from '../../../storage/machine-disk.ts'
import { scratchDirectory } from '../../support/scratch.ts'
import { jsonAnswer, standaloneOauth } from '../../support/standalone-oauth.ts'

const clientId = 'https://client.example/meta/client.json'
const redirect_uris = ['https://client.example/callback']
const answer = jsonAnswer({ client_id: clientId, redirect_uris, token_endpoint_auth_method: 'none' })
const delegation = 'd'.repeat(32)
const ends = 1_900_000_000

/** A refresh token and its sign-in; `hadKey` records for each write whether the key still existed. */
function signedIn() {
  const keys = new SignInKeys(machineDisk, join(scratchDirectory(), 'sign-in.keys'))
  keys.keep(delegation, Buffer.alloc(32, 1))
  keys.settle(delegation)
  const hadKey: [op: string, hadKey: boolean][] = []
  const alone = standaloneOauth({
    answer,
    keys,
    records: {
      RefreshToken: { kind: 'RefreshToken', grantId: 'grant', clientId, iat: 1_700_000_000, exp: ends },
      SignIn: { delegation },
    },
    onWrite: ({ op, args }) => hadKey.push([`${op} ${'grant' in args}`, keys.get(delegation) !== undefined]),
  })
  return { alone, hadKey }
}

test('the key of a sign-in is erased before any record of its grant is removed', async () => {
  const { alone, hadKey } = signedIn()
  const token = 'A'.repeat(43)
  expect((await alone.form('/oauth/revoke', { token, client_id: clientId })).status).toBe(200)
  expect(hadKey.length).toBeGreaterThan(2)
  expect(hadKey.filter(([, had]) => had)).toEqual([])
})
