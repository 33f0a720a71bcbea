/**
 * Waits until an actor has decided everything that was sent to it before. A command whose answer was lost may still be
 * in its mailbox, and a read overtakes it.
 */
import { internalLetter } from '../../actors/records/internal-letter.ts'
import { type Actors, isNotNow } from './ports.ts'

/** `then` takes false where the actor gives no answer now. */
export function whenDecided(actors: Pick<Actors, 'write'>, actor: string, then: (isDecided: boolean) => void): void {
  actors.write(internalLetter('nothing', actor, nobody, {}), (answer) => then(!isNotNow(answer)))
}

const nobody = '0'.repeat(64)
