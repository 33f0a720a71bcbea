/**
 * The limit of every read: uWebSockets.js that answers static bytes, in a separate process. `/N` returns N bytes immediately, with the
 * headers of a board's answer. What is posted is echoed.
 */
import { App, us_socket_local_port } from 'uWebSockets.js'

const bodies = new Map<string, Buffer>()

const app = App()
app.get('/*', (response, request) => {
  const url = request.getUrl()
  let body = bodies.get(url)
  if (body === undefined) {
    body = Buffer.alloc(Number(url.slice(1)), 'x')
    bodies.set(url, body)
  }
  const ready = body
  response.cork(() => {
    response.writeHeader('content-type', 'application/json; charset=utf-8')
    response.writeHeader('access-control-allow-origin', '*')
    response.writeHeader('cache-control', 'no-store')
    response.end(ready)
  })
})
app.post('/*', (response) => {
  response.onAborted(() => {})
  response.onData((chunk, isLast) => {
    if (!isLast) throw new Error('a post that came in pieces')
    response.cork(() => response.end(chunk))
  })
})
app.listen('127.0.0.1', 0, (socket) => {
  if (socket === false) throw new Error('cannot listen')
  process.send?.({ port: us_socket_local_port(socket) })
})
process.once('disconnect', () => process.exit(0))
