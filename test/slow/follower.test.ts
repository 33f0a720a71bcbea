/** A follower answers as its leader does, from its own files. */
import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { operations } from '../../actors/operations.ts'
import { type Board, boardDirectory, refusedBoard, startBoard } from '../support/board-process.ts'
import { Client, person } from '../support/client.ts'
import { setups, World } from '../support/operation-setups.ts'
import { patience } from '../support/patience.ts'
import { program } from '../support/program.ts'
import { caughtUp, headOf, Replicas } from '../support/replicas.ts'
import { runProgram } from '../support/run-program.ts'
import { differences, RememberingClient, wholeView } from '../support/whole-view.ts'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 })

const operator = person('operator of followers')
const stranger = person('stranger to followers')

/** Of ids so many are asked about. */
const asksMax = 60

describe.each([{ shards: '1' }, { shards: '2' }])('over HTTP alone, $shards shards', ({ shards }) => {
  const directory = boardDirectory()
  let replicas: Replicas
  let leader: Board
  let follower: Board
  let known: RememberingClient

  beforeAll(async () => {
    const env = { OPERATORS: operator.id, SHARDS: shards, BROADSIDE_LOOPBACK: '1', SEGMENT_BYTES: '65536' }
    replicas = await Replicas.make({ ...env, COMPACT_SECONDS: '1' })
    leader = await replicas.leader()
    const { serviceId } = await Client.of(leader)
    known = new RememberingClient(leader.address, serviceId)
    const world = new World(known, operator)
    for (const operation of operations.filter(({ kind }) => kind !== 'read')) {
      const answer = await world.send(operation, await setups[operation.name]!(world))
      expect([operation.name, answer.status]).toEqual([operation.name, 200])
    }
    follower = await replicas.follower(leader.address, directory)
  })
  afterAll(async () => {
    await follower.stop()
    await leader.stop()
  })

  async function viewOf(board: Board) {
    const client = await Client.of(board)
    const view = await wholeView(client, known, { operator, stranger }, asksMax)
    client.close()
    return new Map([...view].map(([name, text]) => [name, text.replaceAll(board.address, '')]))
  }

  test('every read is answered as by the leader', async () => {
    await caughtUp(leader, follower)
    const there = await viewOf(leader)
    await caughtUp(leader, follower)
    expect(differences(there, await viewOf(follower))).toEqual([])
  })
})
