/** A reader of a stream: collects what arrives, and waits for it. */
import { type ClientRequest, request } from 'node:http'

export class StreamReader {
  text = ''
  status = 0
  closed = false
  readonly #request: ClientRequest
  #wake: () => void = () => {}

  constructor(address: string, path: string, headers: Readonly<Record<string, string>> = {}) {
    this.#request = request(`${address}${path}`, { agent: false, headers }, (response) => {
      this.status = response.statusCode!
      response.setEncoding('utf8')
      response.on('data', (chunk: string) => {
        this.text += chunk
        this.#wake()
      })
      response.on('error', () => {})
      response.on('close', () => this.#close())
    })
    this.#request.on('error', () => this.#close())
    this.#request.end()
  }

  /** What has arrived once `done` accepts it, or when the stream is over. */
  async until(done: (text: string) => boolean): Promise<string> {
    while (!done(this.text) && !this.closed)
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    return this.text
  }

  close(): void {
    this.#request.destroy()
  }

  #close(): void {
    this.closed = true
    this.#wake()
  }
}

/** Ids of the posts in a text tail, in order. */
export const blockIds = (text: string): string[] => [...text.matchAll(/^\[([0-9a-f]{32})\] /gm)].map(([, id]) => id!)

/** Ids of the posts in a stream of server-sent events, in order. */
export const sseIds = (text: string): string[] =>
  [...text.matchAll(/^id: ([0-9a-f]{32})\ndata: [^\n]*\n\n/gm)].map(([, id]) => id!)
