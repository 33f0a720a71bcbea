/** A sign-in refreshes its tokens as often as its client likes: what the board stores stays the same, and no old token works. */

import { expect, test } from 'vitest'
import type { FactRecord } from '../../../actors/records/record.ts'
import type { OauthKeep } from '../../../actors/sign-in/records.ts'
import type { TakeReply } from '../../../src/command/ports.ts'
import { replyWith } from '../../../src/reads/read.ts'
import { adapterFor, Records, refreshTokenName } from '../../../src/sign-in/records.ts'
import { ShardHarness } from '../../support/shard-harness.ts'

/** The adapter of refresh tokens over a state, and the grants that it ended. */
function kept() {
  const shard = new ShardHarness()
  let letters = 0
  const records = new Records({
    boardIdentity: '0'.repeat(64),
    wallSeconds: () => shard.now,
    actors: {
      write: ({ op, to, args }, told) => {
        const decided = shard.decide('board', op, to, { signed: Buffer.from(`${++letters}`), args, via: 'board' })
        const give: TakeReply = told
        give(decided, undefined)
      },
    },
    read: ({ args }, told) => {
      const found = shard.state.oauth.find(String(args.key), shard.now)
      const record = shard.records[(found?.place ?? 0) - 1]?.record as FactRecord<OauthKeep> | undefined
      const { consumedAt = 0, token = '' } = found ?? {}
      const more = { ...(consumedAt === 0 ? {} : { consumed: consumedAt }), ...(token === '' ? {} : { token }) }
      told({
        ok: true,
        reply: replyWith(JSON.stringify(record === undefined ? {} : { payload: record.facts.payload, ...more })),
        until: 0,
      })
    },
  })
  const ended: string[] = []
  const ending = async (grant: string): Promise<void> => {
    ended.push(grant)
  }
  const Adapter = adapterFor(records, { used: () => new Error('used'), ending })
  return { shard, tokens: new Adapter('RefreshToken'), ended }
}

const day = 86_400
const nameOf = (n: number, grant = 'a') => refreshTokenName(`${n}`.padStart(43, 'x'), grant, 'secret')
const payload = { kind: 'RefreshToken', grantId: 'a' }

test('after five hundred rotations a sign-in has one record, also in a snapshot and after a replay', async () => {
  const { shard, tokens } = kept()
  await tokens.upsert(nameOf(0), payload, 30 * day)
  for (let n = 0; n < 500; n++) {
    expect(await tokens.find(nameOf(n))).toMatchObject({ jti: nameOf(n) })
    await tokens.consume(nameOf(n))
    await tokens.upsert(nameOf(n + 1), payload, 30 * day)
    shard.now += 3_600
  }
  expect(shard.state.oauth.pack()).toHaveLength(1)
  await tokens.upsert(nameOf(0, 'b'), { ...payload, grantId: 'b' }, 30 * day)
  expect(shard.state.oauth.pack()).toHaveLength(2)
  const { replayed, unpacked } = shard.replay()
  for (const state of [replayed, unpacked]) expect(state.oauth.pack()).toEqual(shard.state.oauth.pack())
})

test('every replaced token is recognized as used, however long ago, and the newest is not', async () => {
  const { tokens, ended } = kept()
  await tokens.upsert(nameOf(0), payload, 30 * day)
  for (let n = 0; n < 20; n++) {
    await tokens.consume(nameOf(n))
    expect((await tokens.find(nameOf(n)))?.consumed).toBeGreaterThan(0)
    await tokens.upsert(nameOf(n + 1), payload, 30 * day)
  }
  for (let n = 0; n < 20; n++) {
    expect((await tokens.find(nameOf(n)))?.consumed).toBeGreaterThan(0)
    await expect(tokens.consume(nameOf(n))).rejects.toThrow('used')
  }
  expect(await tokens.find(nameOf(20))).not.toHaveProperty('consumed')
  // Of another family, or of none.
  for (const name of [nameOf(20, 'b'), nameOf(20).slice(0, 43), 'x.']) expect(await tokens.find(name)).toBeUndefined()
  await tokens.destroy(nameOf(3))
  expect([ended, await tokens.find(nameOf(20))]).toEqual([['a'], undefined])
})

test('a token of an older release is used once, and replaced by one of a family', async () => {
  const { shard, tokens } = kept()
  const old = 'A'.repeat(43)
  await tokens.upsert(old, payload, 30 * day)
  expect(await tokens.find(old)).not.toHaveProperty('consumed')
  await tokens.consume(old)
  await tokens.upsert(nameOf(1), payload, 30 * day)
  expect((await tokens.find(old))?.consumed).toBeGreaterThan(0)
  await expect(tokens.consume(old)).rejects.toThrow('used')
  expect(await tokens.find(nameOf(1))).not.toHaveProperty('consumed')
  expect(shard.state.oauth.pack()).toHaveLength(2)
})
