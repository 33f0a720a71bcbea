/** Records of the authorization server: expired clients make room for others. */
import { expect, test } from 'vitest'
import type { Core } from '../../actors/records/core.ts'
import { type FactRecord, RecordType } from '../../actors/records/record.ts'
import { clientsMax, OauthRecords, oauthName } from '../../actors/sign-in/records.ts'

test('expired clients take no room, even before a write sweeps them', () => {
  const records = new OauthRecords({} as Core)
  const keep = (n: number, expires: number): void => {
    const facts = { key: `Client:${n}`, payload: '{}', expires, grant: '' }
    const act: FactRecord = {
      type: RecordType.act,
      room: oauthName,
      at: 1_000,
      author: Buffer.alloc(32),
      op: 'oauth.keep',
      facts,
    }
    records.acts['oauth.keep']!(act as FactRecord<never>, {
      id: Buffer.alloc(16),
      change: 0,
      leaf: 0,
      shard: 0,
      seq: n,
    })
  }
  for (let n = 0; n < clientsMax; n++) keep(n, 2_000)
  expect([records.clients(1_999), records.clients(2_000)]).toEqual([clientsMax, 0])
})
