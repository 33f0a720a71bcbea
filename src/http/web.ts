/** Answers of libraries that speak the web's own Request and Response, sent through the port. */
import type { Exchange, Header } from './port.ts'

/** Names that belong to the engine, or to the way between two hops. */
const ofEngine: ReadonlySet<string> = new Set([
  'connection',
  'content-length',
  'date',
  'keep-alive',
  'transfer-encoding',
  'x-accel-buffering',
])

export async function sendResponse(exchange: Exchange, response: Response, more: readonly Header[]): Promise<void> {
  const given = new Set(more.map(([name]) => name))
  const headers: Header[] = [...more]
  for (const [name, value] of response.headers) if (!ofEngine.has(name) && !given.has(name)) headers.push([name, value])
  if (response.headers.get('content-type')?.includes('text/event-stream') !== true || response.body === null) {
    const body = Buffer.from(await response.arrayBuffer())
    if (!exchange.ended) exchange.reply(response.status, headers, body)
    return
  }
  if (exchange.ended) return response.body.cancel()
  const stream = exchange.stream(response.status, [...headers, ['x-accel-buffering', 'no']])
  const reader = response.body.getReader()
  let go: () => void = () => {}
  let isOver = false
  stream.onClose(() => {
    isOver = true
    reader.cancel().catch(() => {})
    go()
  })
  stream.onDrain(() => go())
  for (;;) {
    const { done, value } = await reader.read()
    if (isOver) return
    if (done) return stream.end()
    if (stream.write(value)) continue
    await new Promise<void>((resolve) => {
      go = resolve
    })
  }
}
