/** HOSTING.md promises that no network address is stored: none is in any file of the board or in its log, whatever a client does. */
import { expect, test, vi } from 'vitest'
import { boardDirectory, startBoard } from '../support/board-process.ts'
import { Client, person } from '../support/client.ts'
import { filesUnder } from '../support/files-under.ts'

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 })

test.each([
  ['203.0.113.77', Buffer.from([203, 0, 113, 77])],
  ['2001:db8:77:88:99:aa:bb:cc', Buffer.from('20010db800770088009900aa00bb00cc', 'hex')],
])('the address %s is in no file and no line of the log, running, stopped or killed', async (address, bytes) => {
  const directory = boardDirectory()
  const limits = JSON.stringify({ unsigned_commands_per_address_per_minute: 2 })
  const env = { TRUST_PROXY: 'X-Client', BROADSIDE_LIMITS: 'on', LIMITS: limits, LOG_LEVEL: 'debug' }
  const board = await startBoard({ directory, env })
  const direct = await Client.of(board)
  const client = direct.from(address)
  const ada = person('ada at home')
  expect((await client.post(ada, { room: 'lobby', text: 'from home' })).status).toBe(200)
  let status = 200
  for (let n = 0; n < 100 && status === 200; n++) status = (await client.send('{"operation":"quota.get"}')).status
  expect(status).toBe(429)
  await client.command(person('caller'), {
    operation: 'tools.call',
    target: 'broadside:hash',
    data: JSON.stringify({ schema: 1, input: { text: 'x' } }),
  })
  const { body } = client.sign(ada, { operation: 'post', text: 'forged' })
  await client.send(body.replace('forged', 'other'))
  await client.send('not a command')
  await client.get('/api/nothing-here')
  await client.get('/search?q=words')
  await fetch(`${board.address}/oauth/register`, { method: 'POST', headers: { 'x-client': address }, body: '{}' })
  const holds = (text: Buffer | string): boolean =>
    Buffer.from(text).includes(address) || (Buffer.isBuffer(text) && text.includes(bytes))
  const found = () => [...filesUnder(directory)].filter(([, content]) => holds(content)).map(([name]) => name)
  expect(found()).toEqual([])
  direct.close()
  client.close()
  await board.stop()
  expect(found()).toEqual([])
  expect(board.lines.filter(holds)).toEqual([])
})
