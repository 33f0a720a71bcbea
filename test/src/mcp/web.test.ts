/** Answers of libraries, sent through the port: each header once. */
import { expect, test } from 'vitest'
import type { Exchange, Header } from '../../../src/http/port.ts'
import { sendResponse } from '../../../src/mcp/routes.ts'

test('a stream says once that nobody may buffer it', async () => {
  let told: readonly Header[] = []
  const exchange = {
    ended: false,
    stream: (_status: number, headers: readonly Header[]) => {
      told = headers
      return { onClose: () => {}, onDrain: () => {}, write: () => true, end: () => {} }
    },
  }
  const headers = { 'content-type': 'text/event-stream', 'x-accel-buffering': 'no' }
  await sendResponse(exchange as unknown as Exchange, new Response('data: x\n\n', { headers }), [], () => {})
  expect(told).toEqual([
    ['content-type', 'text/event-stream'],
    ['x-accel-buffering', 'no'],
  ])
})

test('a client that leaves an open stream ends the call behind it', async () => {
  let leave = () => {}
  const exchange = {
    ended: false,
    stream: () => ({
      onClose: (callback: () => void) => {
        leave = callback
      },
      onDrain: () => {},
      write: () => true,
      end: () => {},
    }),
  }
  const call = new AbortController()
  const wasCanceled = new Promise((resolve) => {
    const answer = new ReadableStream({ cancel: resolve })
    const response = new Response(answer, { headers: { 'content-type': 'text/event-stream' } })
    void sendResponse(exchange as unknown as Exchange, response, [], () => call.abort())
  })
  leave()
  await wasCanceled
  expect(call.signal.aborted).toBe(true)
})
