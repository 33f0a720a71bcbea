/** What a follower asks the threads that keep the journals: where each ends, and to take frames of the leader's. */
import { type CopiedFrames, Diverged, type JournalPlace, placeOf } from '../../storage/copied-frames.ts'
import { DiskFull } from '../../storage/disk.ts'
import type { Journal } from '../../storage/journal.ts'

/** Without frames: only where the journal ends. */
export type FollowAsk = readonly ['follow', CopiedFrames | undefined]

/** `acts`: names of the operations among what was taken. `isOver`: another log begins, and this process has to be started again. */
export type FollowAnswer =
  | {
      readonly ok: true
      readonly place: JournalPlace
      readonly acts?: readonly string[]
      readonly isOver?: boolean
    }
  /** `isForGood`: what is here and what came are not the same; nothing was changed. */
  | { readonly ok: false; readonly problem: string; readonly isForGood: boolean }

/** Takes, and tells where the journal ends then. What leaves a journal in an unknown state is thrown. */
export function answerFollow(journal: Journal, take: () => readonly string[] | boolean | undefined): FollowAnswer {
  try {
    const taken = take()
    const place = placeOf(journal)
    if (typeof taken === 'boolean') return { ok: true, place, isOver: taken }
    return { ok: true, place, ...(taken === undefined ? {} : { acts: taken }) }
  } catch (error) {
    if (error instanceof Diverged) return { ok: false, problem: error.message, isForGood: true }
    if (error instanceof DiskFull) return { ok: false, problem: 'the disk is full', isForGood: false }
    throw error
  }
}
