import { connect } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { expect, test, vi } from 'vitest'
import { bodyStallMs } from '../../src/http/port.ts'
import { boardDirectory, startBoard } from '../support/board-process.ts'
import { Client, person } from '../support/client.ts'

vi.setConfig({ testTimeout: 900_000 })

/** More answers than the kernel's buffers hold. */
const asked = 30

test('a reader that reads nothing of long answers is cut off, and further answers are never made', async () => {
  const board = await startBoard({ directory: boardDirectory() })
  const client = await Client.of(board)
  for (let n = 0; n < 30; n++) await client.post(person('ada'), { room: 'long', text: `${n} ${'x'.repeat(32_000)}` })
  /** How many answers reach a reader that reads nothing for this long. */
  const answersAfter = async (stillMs: number): Promise<number> => {
    const socket = connect(board.port, '127.0.0.1')
    const closed = new Promise<void>((done) => socket.once('close', () => done()))
    let text = ''
    socket.on('error', () => {})
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1')
    })
    socket.pause()
    socket.write('GET /api/events?room=long&limit=200 HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(asked))
    await pause(stillMs)
    socket.resume()
    await closed
    return text.split('HTTP/1.1 200').length - 1
  }
  let answers = await answersAfter(bodyStallMs + 3_000)
  // If the machine is so slow that the board did not notice: a reader that stalls for longer.
  if (answers === asked) answers = await answersAfter(6 * bodyStallMs)
  expect(answers).toBeLessThan(asked)
  expect((await client.get('/healthz')).status).toBe(200)
  client.close()
})
