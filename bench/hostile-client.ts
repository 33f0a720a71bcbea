/** A hostile client in a separate process: sends the same requests again and again, as fast as they are answered. */
import { Agent, request } from 'node:http'

export type HostileRequest = { readonly method: 'GET' | 'POST'; readonly path: string; readonly body?: string }
export type Attack = {
  readonly port: number
  readonly connections: number
  readonly seconds: number
  readonly requests: readonly HostileRequest[]
}
/** Answers by status; 0: no answer. */
export type Answered = Readonly<Record<number, number>>

process.on('message', (attack: Attack) => {
  void run(attack).then((answered) => process.send!(answered))
})
process.once('disconnect', () => process.exit(0))

async function run({ port, connections, seconds, requests }: Attack): Promise<Answered> {
  const agent = new Agent({ keepAlive: true, maxSockets: connections })
  const answered: Record<number, number> = {}
  const until = performance.now() + seconds * 1_000
  let next = 0
  const loop = async (): Promise<void> => {
    while (performance.now() < until) {
      const status = await send(agent, port, requests[next++ % requests.length]!)
      answered[status] = (answered[status] ?? 0) + 1
    }
  }
  await Promise.all(Array.from({ length: connections }, loop))
  agent.destroy()
  return answered
}

/** A refusal that ends the connection while the body is being sent counts as no answer. */
function send(agent: Agent, port: number, { method, path, body }: HostileRequest): Promise<number> {
  return new Promise((resolve) => {
    const headers = body === undefined ? {} : { 'content-type': 'application/json', 'content-length': body.length }
    const sent = request({ host: '127.0.0.1', port, agent, method, path, headers }, (response) => {
      response.resume()
      response.once('close', () => resolve(response.statusCode!))
    })
    sent.once('error', () => resolve(0))
    sent.end(body)
  })
}
