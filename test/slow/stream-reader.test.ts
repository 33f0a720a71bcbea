/** A follower's reader of the stream, on real servers. */
import { jetstreamManager } from '@nats-io/jetstream'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { machine } from '../../src/platform.ts'
import { openStream } from '../../src/replication/open-stream.ts'
import { seedIn } from '../../src/replication/seed.ts'
import { framesSubject, streamName } from '../../src/replication/stream.ts'
import { StreamReader } from '../../src/replication/stream-reader.ts'
import { missingNats, skipNote, skipWithout } from '../peers/peers.ts'
import { boardDirectory } from '../support/board-process.ts'
import { NatsCluster } from '../support/nats-cluster.ts'
import { patience } from '../support/patience.ts'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 })

const missing = missingNats()
const serviceId = 'read'
/** A follower that hears nothing for this long replaces its leader. */
const silentMs = 20_000

describe.skipIf(skipWithout(missing))(`from real servers${skipNote(missing)}`, () => {
  let cluster: NatsCluster
  beforeAll(async () => {
    cluster = await NatsCluster.start(boardDirectory())
  })
  afterAll(() => cluster.stop())

  test('when the server with the reader’s state is lost, messages arrive all the same, before the leader seems dead', async () => {
    const servers = cluster.servers.map(({ port }) => `nats://127.0.0.1:${port}`)
    const settings = {
      servers,
      keyFile: cluster.keyFile,
      systemKeyFile: cluster.systemKeyFile,
      ack: 'quorum',
    } as const
    // Just started, the servers have no leader yet.
    const stream = await vi.waitFor(() => openStream(machine, settings, serviceId, 'make'), patience)
    const connection = await cluster.connection()
    const manager = await jetstreamManager(connection, { checkAPI: false })
    const publish = () => connection.request(framesSubject(serviceId), 'not from a board')
    await publish()
    const reader = await StreamReader.open({
      servers,
      seed: seedIn(machine.disk, cluster.readKeyFile),
      serviceId,
      clock: machine.clock,
    })
    const messages = reader.from(1)
    expect((await messages.next()).value?.seq).toBe(1)
    for (let seq = 2; seq <= 4; seq++) {
      // After a restart, the reader's state has no leader for a moment, or the reader has not made it again yet.
      const knows = await vi.waitFor(async () => {
        const consumers = await manager.consumers.list(streamName(serviceId)).next()
        const found = consumers.map(({ cluster: placed }) => placed?.leader).find((name) => name !== undefined)
        expect(cluster.servers.map(({ name }) => name)).toContain(found)
        return found!
      }, patience)
      const next = messages.next()
      await cluster.kill(knows)
      await cluster.startServer(knows)
      await vi.waitFor(publish, patience)
      await vi.waitFor(async () => expect(await reader.last()).toBeGreaterThanOrEqual(seq), patience)
      const found = await Promise.race([next, new Promise((over) => setTimeout(over, silentMs, 'silence'))])
      expect(found).toMatchObject({ value: { seq } })
      for (let more = await reader.last(); more > seq; seq++) await messages.next()
    }
    await reader.close()
    await connection.close()
    await stream.close()
  })
})
