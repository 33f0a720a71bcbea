/** Follows of /v1/stream that end by time: a delegation that expires, and a peer that has gone silent. */
import { test, vi } from 'vitest'
import { boardDirectory, startBoard } from '../support/board-process.ts'
import { Client, person } from '../support/client.ts'
import { createDelegation } from '../support/delegations.ts'
import { StreamClient } from '../support/stream-client.ts'

vi.setConfig({ testTimeout: 600_000 })

// Both at once: they wait for a minute that no setting shortens.
test.concurrent.for(['uws', 'node'])(
  'on the %s engine the expiry of a delegation ends its follows, and silence a connection',
  async (engine, { expect }) => {
    const board = await startBoard({ directory: boardDirectory(), env: { HTTP_ENGINE: engine } })
    const client = await Client.of(board)
    const [owner, key] = [person('owner'), person('key')]
    const made = await client.command(owner, { operation: 'room.create', room: 'inner', visibility: 'private' })
    expect(made.status, made.text).toBe(200)
    await createDelegation(client, owner, key, { ttl: 60 })
    const follow = (by: typeof owner) =>
      client.sign(by, { operation: 'updates.get', data: '{"schema":1,"rooms":["inner"]}' }).body
    const [stream, silent] = [
      await StreamClient.open(board.address),
      await StreamClient.open(board.address, { autoPong: false }),
    ]
    const [ended, open] = [stream.send(follow(key), 'follow'), stream.send(follow(owner), 'follow')]
    expect([(await stream.answer(ended)).status, (await stream.answer(open)).status]).toEqual([200, 200])
    await stream.until(() => stream.of(ended).find(({ error }) => error?.code === 'forbidden'))
    await client.post(owner, { room: 'inner', text: 'behind' })
    await stream.until(() => stream.texts(open).length === 1)
    expect(stream.texts(ended)).toEqual([])
    expect(await silent.closed()).toBe(4009)
    expect(stream.code).toBeUndefined()
    stream.close()
    client.close()
    await board.stop()
  },
)
