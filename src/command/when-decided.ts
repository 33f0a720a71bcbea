/**
 * When everything is decided that an actor was sent before: a command whose answer was lost may still lie in its mailbox, and a read
 * overtakes those.
 */
import { internalLetter } from '../../actors/internal-letter.ts'
import { type Actors, isNotNow } from './ports.ts'

/** `then` takes false where the actor gives no answer now. */
export function whenDecided(actors: Pick<Actors, 'write'>, actor: string, then: (isDecided: boolean) => void): void {
  actors.write(internalLetter('nothing', actor, nobody, {}), (answer) => then(!isNotNow(answer)))
}

const nobody = '0'.repeat(64)
