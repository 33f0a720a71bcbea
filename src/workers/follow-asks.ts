/** What a follower requests from the threads that own the journals: where each ends, and to append frames copied from the leader. */
import { type CopiedFrames, Diverged, type JournalPlace, placeOf } from '../../storage/copied-frames.ts'
import type { Journal } from '../../storage/journal.ts'

/** Without frames, it only queries where the journal ends. */
export type FollowAsk = readonly ['follow', CopiedFrames | undefined]

/**
 * `acts`: names of the operations among the records that a shard appended. `log`: the newest change that the log covers, and whether the
 * leader began another log, so that this process must restart.
 */
export type FollowAnswer =
  | {
      readonly ok: true
      readonly place: JournalPlace
      readonly acts?: readonly string[]
      readonly log?: { readonly change: number; readonly isOver: boolean }
    }
  /** `isForGood`: the local and the copied frames contradict each other; nothing was changed. Otherwise there was no answer. */
  | { readonly ok: false; readonly problem: string; readonly isForGood: boolean }

/**
 * Appends, and returns where the journal then ends. Errors that may leave it half done are thrown, including a full disk: those cannot be
 * retried.
 */
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
