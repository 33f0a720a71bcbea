/** The thread of a clerk: parses commands and checks signatures for the main thread. Stateless except for its cache of examined keys. */
import { internalLimits } from '../../actors/kernel/limits.ts'
import { Link, type Port } from '../../actors/kernel/link.ts'
import { type Reading, readAsClerk } from '../command/clerk.ts'
import { chooseBackend, type Ed25519Backend, judge } from '../verify/backends.ts'
import { type Verdict, verdictOf } from '../verify/verifier.ts'
import { readFault, type ThreadStarter } from './thread.ts'

export type ClerkThread = {
  readonly serviceId: string
  /** Proof-of-work bits that every post must provide; 0 for none. */
  readonly proofBits: number
  readonly front: Port
}

/** A command and the interface it arrived on; or a single signature of the right length. */
export type ClerkAsk =
  | readonly ['read', body: Uint8Array, via: string]
  | readonly ['verify', signature: Uint8Array, publicKey: Uint8Array, message: Uint8Array]

export const thread: ThreadStarter<ClerkThread> = ({ front, ...facts }, { clock, report }) => {
  const backend = chooseBackend()
  const link = new Link({
    port: front,
    openMax: 1,
    patienceMs: internalLimits.patienceMs,
    now: clock.monotonicMs,
    timers: clock,
    onAsk: (body, id) => {
      try {
        link.answer(id, answerOf(body as ClerkAsk, { ...facts, backend }))
      } catch (error) {
        // The main thread parses the command too, and answers the sender.
        readFault(report, error)
        link.answer(id, 'unread' satisfies Reading)
      }
    },
  })
  return { facts: { backend: backend.name }, stop: () => link.close() }
}

function answerOf(
  asked: ClerkAsk,
  options: Pick<ClerkThread, 'serviceId' | 'proofBits'> & { readonly backend: Ed25519Backend },
): Reading | Verdict {
  if (asked[0] === 'read') return readAsClerk(asked[1], asked[2], options)
  const [, signature, publicKey, message] = asked
  return verdictOf(judge(options.backend, { signature, publicKey, message }))
}
