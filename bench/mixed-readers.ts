/** The readers of the mixed bench, in a separate process: tails, searches and exports, until they are stopped. */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'

export type ReadersTask = {
  readonly port: number
  readonly rooms: number
  readonly tailsPerRoom: number
  readonly searchesPerSecond: number
  readonly exports: number
  /** Of each export. */
  readonly exportBytesPerSecond: number
}

export type ReadersFound = {
  readonly deliveriesPerSecond: number
  readonly searchesPerSecond: number
  /** Of all exports together. */
  readonly exportBytesPerSecond: number
}

const words = ['board', 'signed', 'proven', 'leaf', 'checkpoint', 'anyone']
/** Ends each post in a tail. */
const end = '\n\n'
const shared = Buffer.allocUnsafeSlow(256 * 1024)
const paceMs = 20

class Readers {
  readonly #task: ReadersTask
  readonly #sockets: Socket[] = []
  readonly #startedAt = performance.now()
  #timer: NodeJS.Timeout | undefined
  #deliveries = 0
  #searches = 0
  #searchesDue = 0
  #refusal: string | undefined
  #exportBytes = 0
  #isOver = false

  constructor(task: ReadersTask) {
    this.#task = task
  }

  async begin(): Promise<void> {
    const { rooms, tailsPerRoom, exports, searchesPerSecond } = this.#task
    for (let room = 0; room < rooms; room++)
      await Promise.all(Array.from({ length: tailsPerRoom }, () => this.#tail(room)))
    for (let n = 0; n < exports; n++) void this.#export()
    this.#timer = setInterval(() => {
      this.#searchesDue += (searchesPerSecond * paceMs) / 1000
      for (; this.#searchesDue >= 1; this.#searchesDue--) void this.#search()
    }, paceMs)
  }

  /** Throws if a search was refused: the board did less than the table would say. */
  stop(): ReadersFound {
    this.#isOver = true
    clearInterval(this.#timer)
    for (const socket of this.#sockets) socket.destroy()
    if (this.#refusal !== undefined) throw new Error(this.#refusal)
    const seconds = (performance.now() - this.#startedAt) / 1000
    return {
      deliveriesPerSecond: this.#deliveries / seconds,
      searchesPerSecond: this.#searches / seconds,
      exportBytesPerSecond: this.#exportBytes / seconds,
    }
  }

  async #tail(room: number): Promise<void> {
    const callback = (size: number, bytes: Uint8Array): boolean => {
      for (let at = (bytes as Buffer).indexOf(end); at !== -1 && at < size; at = (bytes as Buffer).indexOf(end, at + 1))
        this.#deliveries++
      return true
    }
    const socket = connect({ port: this.#task.port, host: '127.0.0.1', onread: { buffer: shared, callback } })
    this.#sockets.push(socket)
    await once(socket, 'connect')
    socket.write(`GET /tail/room-${room}?last=0 HTTP/1.1\r\nHost: bench\r\n\r\n`)
  }

  async #search(): Promise<void> {
    const query = words[this.#searches % words.length]!
    const answer = await fetch(`http://127.0.0.1:${this.#task.port}/api/events?query=${query}&limit=20`)
    const text = await answer.text()
    if (answer.status === 200) this.#searches++
    else this.#refusal = `a search is answered with ${answer.status}: ${text}`
  }

  /** One export after the other, read at this pace and no faster. */
  async #export(): Promise<void> {
    const { port, exportBytesPerSecond } = this.#task
    while (!this.#isOver) {
      const answer = await fetch(`http://127.0.0.1:${port}/v1/export`)
      const startedAt = performance.now()
      let bytes = 0
      for await (const chunk of answer.body!) {
        if (this.#isOver) return
        bytes += chunk.length
        this.#exportBytes += chunk.length
        const aheadMs = (bytes / exportBytesPerSecond) * 1000 - (performance.now() - startedAt)
        if (aheadMs > 1) await new Promise((resolve) => setTimeout(resolve, aheadMs))
      }
    }
  }
}

let readers: Readers | undefined

async function hear(said: ReadersTask | 'stop'): Promise<ReadersFound | undefined> {
  if (said === 'stop') return readers?.stop()
  readers = new Readers(said)
  await readers.begin()
  return undefined
}

process.on('message', (said: ReadersTask | 'stop') => {
  hear(said).then(
    (found) => process.send?.({ found }),
    (error: Error) => process.send?.({ problem: error.stack ?? error.message }),
  )
})
process.once('disconnect', () => process.exit(0))
