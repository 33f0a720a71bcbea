/** What servers report before they count as healthy, when they answer one by one and know little of each other. */
import { once } from 'node:events'
import { createServer, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { afterEach, expect, test } from 'vitest'
import { createNatsKeyFile } from '../../../src/cli/key-file.ts'
import { systemClock } from '../../../src/clock.ts'
import { seedIn } from '../../../src/replication/seed.ts'
import { JournalStream } from '../../../src/replication/stream.ts'
import { machineDisk } from '../../../storage/machine-disk.ts'
import { scratchDirectory } from '../../support/scratch.ts'

const servers: Server[] = []

afterEach(() => {
  for (const server of servers.splice(0)) server.close()
})

/** n1 leads the stream; it has heard nothing of the two others yet. */
const stream = {
  config: { num_replicas: 3, storage: 'file' },
  state: { first_seq: 0, last_seq: 0 },
  cluster: {
    leader: 'n1',
    replicas: ['n2', 'n3'].map((name) => ({ name, current: false, active: 0, offline: false })),
  },
}

const info = { server_id: 'n1', server_name: 'n1', version: '2.14.3', headers: true, max_payload: 1_048_576, proto: 1 }

/** Answers as a NATS server does. `others`: servers that report on themselves a while after n1. */
function serve(socket: Socket, others: readonly string[]): void {
  const inboxes = new Map<string, string>()
  const answer = (reply: string, body: object): void => {
    const [, sid] = [...inboxes].find(([inbox]) => reply.startsWith(inbox.replace(/\*$/, ''))) ?? []
    const text = JSON.stringify(body)
    socket.write(`MSG ${reply} ${sid} ${Buffer.byteLength(text)}\r\n${text}\r\n`)
  }
  const said = (name: string) => ({
    server: { name, ver: info.version },
    data: { jetstream: { config: { sync_always: true } } },
  })
  const asked = async (subject: string, reply: string): Promise<void> => {
    if (subject.startsWith('$JS.API.STREAM.INFO.')) return answer(reply, stream)
    answer(reply, said('n1'))
    for (const name of others) {
      await pause(100)
      if (!socket.destroyed) answer(reply, said(name))
    }
  }
  socket.on('error', () => {})
  socket.write(`INFO ${JSON.stringify(info)}\r\n`)
  let rest = ''
  socket.on('data', (bytes: Buffer) => {
    const lines = (rest + bytes.toString('latin1')).split('\r\n')
    rest = lines.pop()!
    for (const line of lines) {
      const [verb, subject = '', ...more] = line.split(' ')
      if (verb === 'PING') socket.write('PONG\r\n')
      if (verb === 'SUB') inboxes.set(subject, more.at(-1)!)
      if (verb === 'PUB' && more.length === 2) void asked(subject, more[0]!)
    }
  })
}

async function opened(others: readonly string[]): Promise<JournalStream> {
  const server = createServer((socket) => serve(socket, others)).listen(0, '127.0.0.1')
  servers.push(server)
  await once(server, 'listening')
  const address = server.address()
  const port = address !== null && typeof address === 'object' ? address.port : 0
  const keyFile = join(scratchDirectory(), 'board.nk')
  await createNatsKeyFile(keyFile)
  const seed = seedIn(machineDisk, keyFile)
  const options = { servers: [`nats://127.0.0.1:${port}`], seed, systemSeed: seed, serviceId: 's', clock: systemClock }
  return JournalStream.open(options, 'refuse')
}

test('if no other counts as up to date, the answers of a majority are awaited', async () => {
  const found = await opened(['n2', 'n3'])
  expect(found.isChecked).toBe(true)
  await found.close()
})

test('one server alone is no majority', async () => {
  await expect(opened([])).rejects.toThrow('The NATS server n2 did not report whether it syncs every message')
})
