/**
 * No command can be smuggled behind a request without a body: bytes that the sender hid from the parser (an empty field name ends what the
 * native engine shows of a head) are not executed, whatever the answer to the request.
 */
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { Client, person } from '../support/client.ts'
import { RawConnection } from '../support/raw-http.ts'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 })

describe.each(['uws', 'node'])('on %s', (engine) => {
  let board: Board
  let client: Client

  beforeAll(async () => {
    board = await startBoard({ directory: boardDirectory(), env: { HTTP_ENGINE: engine } })
    client = await Client.of(board)
  })
  afterAll(async () => {
    client.close()
    await board.stop()
  })

  const hidden = ': x\r\nContent-Length: 7\r\nTransfer-Encoding: chunked\r\n'
  const posts = async () => (await client.get('/api/stats')).data.stats!.events

  test('no request of a method that takes a body smuggles in a second command', async () => {
    const smuggler = person('smuggler')
    const before = await posts()
    const paths = [
      '/nowhere',
      '/v1/command',
      '/mcp',
      '/c64/e30',
      `/in/${'0'.repeat(32)}/x`,
      '/oauth/token',
      '/',
      '/api/rooms',
    ]
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE', 'MKCOL', 'PROPFIND']) {
      for (const path of paths) {
        for (const more of ['', hidden]) {
          const { body } = client.sign(smuggler, { operation: 'post', text: `${method} ${path}` })
          const command = `POST /v1/command HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: ${body.length}\r\n\r\n${body}`
          const head = `${method} ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\n${more}\r\n`
          const [together, apart] = [await RawConnection.open(board.port), await RawConnection.open(board.port)]
          together.send(head + command)
          await together.closed()
          apart.send(head)
          const answer = await apart.answer()
          expect([method, path, answer.headers.get('connection')]).toEqual([method, path, 'close'])
          apart.send(command)
          await apart.closed()
        }
      }
    }
    expect(await posts()).toBe(before)
  })

  test('of two pipelined commands node answers both, and the native engine executes only the first', async () => {
    const writer = person('writer')
    const before = await posts()
    const signed = ['one', 'two'].map((text) => client.sign(writer, { operation: 'post', text }))
    const connection = await RawConnection.open(board.port)
    connection.send(
      signed
        .map(({ body }) => `POST /v1/command HTTP/1.1\r\nHost: a\r\nContent-Length: ${body.length}\r\n\r\n${body}`)
        .join(''),
    )
    if (engine === 'uws') await connection.closed()
    else for (const each of signed) expect((await connection.answer()).body.toString()).toContain(each.eventId)
    connection.destroy()
    // Resent commands have their effect exactly once: a client that was cut off loses nothing.
    const answers = []
    for (const { body } of signed) answers.push(await client.send(body))
    expect(answers.map(({ status }) => status)).toEqual([200, 200])
    expect(answers.map(({ data }) => data.receipt!.duplicate === true)).toEqual([true, engine === 'node'])
    expect(await posts()).toBe(before! + 2)
  })
})
