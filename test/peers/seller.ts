/**
 * What sellers of either protocol have in common: one tool on loopback, paid by a header. A test can inspect its requests, drop any answer,
 * and wait at each step.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A transfer that the seller's chain has made. `nonce`: makes it unique. */
export type Settled = { readonly from: string; readonly to: string; readonly value: bigint; readonly nonce: string }

export type Step = 'asked' | 'paid' | 'answered' | 'delivered'

export abstract class Seller {
  /** In order. */
  abstract readonly settled: readonly Settled[]
  /** Lowercase name of the header that carries a payment. */
  protected abstract readonly header: string
  /** Requests that reached the tool, by whether they carried a payment. */
  readonly requests: { readonly paid: boolean; readonly header: string }[] = []
  /** What happens to the answer to the next paid request: it is not processed, or its answer is lost at the end. */
  drop: 'before' | 'after' | undefined
  /** It does not notice that it is paid, and demands payment again. */
  isBlind = false
  /** Called when a request has arrived, and when its answer is ready; the answer waits for it. */
  when: (step: Step) => unknown = () => {}
  /** Dollars. */
  price = '0.0025'
  payTo = `0x${'11'.repeat(20)}`
  #server: Server | undefined
  port = 0

  /** The transfer on its chain for the payment that a receipt names. */
  abstract transferIn(receipt: { readonly transaction?: string; readonly reference?: string }): Settled | undefined

  protected abstract answer(request: IncomingMessage, response: ServerResponse): unknown

  protected async listen(): Promise<this> {
    this.#server = createServer((request, response) => void this.#take(request, response))
    await new Promise<void>((ready) => this.#server!.listen(0, '127.0.0.1', ready))
    this.port = (this.#server.address() as AddressInfo).port
    return this
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}/weather`
  }

  get paidRequests(): readonly string[] {
    return this.requests.filter(({ paid }) => paid).map(({ header }) => header)
  }

  close(): void {
    this.#server?.close()
    this.#server?.closeAllConnections()
  }

  /** Some read one of the two, some the other. */
  #hide(request: IncomingMessage): void {
    delete request.headers[this.header]
    const at = request.rawHeaders.findIndex((name, index) => index % 2 === 0 && name.toLowerCase() === this.header)
    if (at >= 0) request.rawHeaders.splice(at, 2)
  }

  async #take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const header = String(request.headers[this.header] ?? '')
    this.requests.push({ paid: header !== '', header })
    await this.when(header === '' ? 'asked' : 'paid')
    response.once('finish', () => void this.when(header === '' ? 'answered' : 'delivered'))
    const drop = header === '' ? undefined : this.drop
    this.drop = header === '' ? this.drop : undefined
    if (drop === 'before') {
      request.socket.resetAndDestroy()
      return
    }
    // It is done, and the answer does not arrive.
    if (drop === 'after') response.end = () => response.destroy()
    if (this.isBlind) this.#hide(request)
    await this.answer(request, response)
  }
}
