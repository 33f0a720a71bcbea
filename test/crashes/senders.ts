/** The interfaces for many commands, for a board that dies while they are answered: `POST /v1/commands` and `/v1/stream`. */
import { request } from 'node:http'
import WebSocket from 'ws'
import type { SignedCommand } from '../support/client.ts'
import { ConnectionLost, type Outcome, type Sender } from '../support/load.ts'

type AnswerJson = {
  readonly status: number
  readonly data?: Outcome['data']
  readonly error?: { readonly code: string }
}

function outcomeOf({ status, data = {}, error }: AnswerJson): Outcome {
  return { status, data, code: error?.code }
}

/** Sends commands as the lines of one body. An answer counts as soon as its line is complete, even if the rest never arrives. */
export function sendBatch(
  address: string,
  commands: readonly SignedCommand[],
  onAnswer: (at: number, outcome: Outcome) => void,
): Promise<void> {
  const body = commands.map((command) => `${command.body}\n`).join('')
  return new Promise((resolve, reject) => {
    const gone = (cause?: unknown): void => reject(new ConnectionLost('the batch broke off', { cause }))
    const sent = request(`${address}/v1/commands`, { method: 'POST', agent: false }, (response) => {
      let rest = ''
      let answered = 0
      response.setEncoding('utf8')
      response.on('data', (chunk: string) => {
        const lines = (rest + chunk).split('\n')
        rest = lines.pop()!
        try {
          if (response.statusCode !== 200) throw new Error(`/v1/commands answered ${response.statusCode}: ${chunk}`)
          for (const line of lines) {
            const json = JSON.parse(line) as AnswerJson & { readonly line: number }
            answered += 1
            onAnswer(json.line - 1, outcomeOf(json))
          }
        } catch (error) {
          reject(error)
        }
      })
      response.on('error', gone)
      response.on('close', () => (response.complete && answered === commands.length ? resolve() : gone()))
    })
    sent.on('error', gone)
    sent.end(body)
  })
}

/** Sends batches of 1 to `linesMax` commands. */
export function batchSender(address: string, random: (below: number) => number, linesMax: number): Sender {
  return {
    batchSize: () => 1 + random(linesMax),
    send: (commands, onAnswer) => sendBatch(address, commands, onAnswer),
  }
}

/** Sends 1 to `togetherMax` commands at a time as messages of one WebSocket, and waits until all are answered. */
export function streamSender(
  address: string,
  random: (below: number) => number,
  togetherMax: number,
): Sender & { readonly close: () => void } {
  let opening: Promise<WebSocket> | undefined
  const open = (): Promise<WebSocket> =>
    new Promise((resolve, reject) => {
      const socket = new WebSocket(`${address.replace('http', 'ws')}/v1/stream`, { perMessageDeflate: false })
      socket.on('error', (cause) => reject(new ConnectionLost('the stream broke off', { cause })))
      socket.on('open', () => resolve(socket))
    })
  const send: Sender['send'] = async (commands, onAnswer) => {
    opening ??= open()
    const socket = await opening
    await new Promise<void>((resolve, reject) => {
      let answered = 0
      const onClose = (code: number): void => reject(new ConnectionLost(`the stream was closed with ${code}`))
      const onMessage = (data: WebSocket.RawData): void => {
        const json = JSON.parse(String(data)) as AnswerJson & { readonly id: string }
        try {
          onAnswer(Number(json.id), outcomeOf(json))
        } catch (error) {
          reject(error)
        }
        answered += 1
        if (answered < commands.length) return
        socket.off('message', onMessage)
        socket.off('close', onClose)
        resolve()
      }
      socket.on('message', onMessage)
      socket.on('close', onClose)
      if (socket.readyState !== WebSocket.OPEN) onClose(1006)
      for (const [at, { body }] of commands.entries()) socket.send(`{"id":"${at}","command":${body}}`)
    })
  }
  // A connection that never opened has told its sender why.
  const close = (): void =>
    void opening?.then(
      (socket) => socket.close(),
      () => {},
    )
  return { batchSize: () => 1 + random(togetherMax), send, close }
}
