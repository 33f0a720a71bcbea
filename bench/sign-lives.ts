/**
 * Lives of works, signed before the clock starts: requested, claimed, delivered, submitted, accepted. Five commands, four transitions.
 * Every id is a hash of what is signed, so each command can name what the previous one creates.
 */
import { createHash, hash } from 'node:crypto'
import { type CommandFields, type SignedCommand, type Signer, signCommand, signerFromSeed } from '../src/cli/sign.ts'
import { requestBytes } from './lane.ts'

/** Transitions of one life. */
export const transitionsOfLife = 4

export const requester = person('requester')

let lived = 0

/** The requests of the next `count` lives. Each has its own worker, and the same requester. */
export function signLives(serviceId: string, count: number): Buffer[][] {
  const nowSeconds = Math.floor(Date.now() / 1_000)
  return Array.from({ length: count }, () => {
    const name = ++lived
    const worker = person(`worker ${name}`)
    const sign = (signer: Signer, fields: CommandFields) => signCommand(fields, { signer, serviceId, nowSeconds })
    const data = '{"schema":1,"title":"bench"}'
    const created = sign(requester, { operation: 'work.create', room: 'bench', text: `work ${name}`, amount: 10, data })
    const work = { event_id: created.eventId }
    const text = `result ${name}`
    const result = sign(worker, { operation: 'post', room: 'bench', text, kind: 'result', reply_to: created.eventId })
    const accepted = JSON.stringify({ schema: 1, result_sha256: hash('sha256', text) })
    return [
      created,
      sign(worker, { operation: 'work.claim', ...work, ttl: 7_200 }),
      result,
      sign(worker, { operation: 'work.submit', ...work, target: result.eventId, amount: 1 }),
      sign(requester, { operation: 'work.accept', ...work, data: accepted }),
    ].map(({ body }: SignedCommand) => requestBytes('/v1/command', body))
  })
}

export function person(name: string): Signer {
  return signerFromSeed(createHash('sha256').update(`bench works ${name}`).digest())
}
