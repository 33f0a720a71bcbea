/** What a follower asks the threads that keep the journals: where each ends, and to take frames of the leader's. */
import { type CopiedFrames, Diverged, type JournalPlace, placeOf } from '../../storage/copied-frames.ts'
import type { Journal } from '../../storage/journal.ts'

/** Without frames: only where the journal ends. */
export type FollowAsk = readonly ['follow', CopiedFrames | undefined]

/**
 * `acts`: names of the operations among what a shard took. `log`: the newest change that the log covers, and whether another log begins,
 * and this process has to be started again.
 */
export type FollowAnswer =
  | {
      readonly ok: true
      readonly place: JournalPlace
      readonly acts?: readonly string[]
      readonly log?: { readonly change: number; readonly isOver: boolean }
    }
  /** `isForGood`: what is here and what came are not the same; nothing was changed. Else there was no answer. */
  | { readonly ok: false; readonly problem: string; readonly isForGood: boolean }

/** Takes, and tells where the journal ends then. What may leave half of it done is thrown, a full disk too: it cannot be tried again. */
export function answerFollow(
  journal: Journal,
  take: () => Pick<Extract<FollowAnswer, { ok: true }>, 'acts' | 'log'> | undefined,
): FollowAnswer {
  try {
    const taken = take()
    return { ok: true, place: placeOf(journal), ...taken }
  } catch (error) {
    if (error instanceof Diverged) return { ok: false, problem: error.message, isForGood: true }
    throw error
  }
}
