/** Passes frames copied from the leader to the threads that own a follower's journals. */
import type { Answered, Link } from '../../actors/kernel/link.ts'
import type { CopiedFrames, JournalPlace } from '../../storage/copied-frames.ts'
import type { Ends } from '../replication/journals-out.ts'
import type { FollowAnswer, FollowAsk } from './follow-asks.ts'

type Failed = Extract<FollowAnswer, { ok: false }>

/**
 * `acts`: names of the operations among the appended records. `change`: the newest that the log covers. `isOver`: the leader began another
 * log, and this process must restart.
 */
type Taken = {
  readonly ok: true
  readonly places: readonly JournalPlace[]
  readonly ends: Ends
  readonly acts: ReadonlySet<string>
  readonly change: number
  readonly isOver: boolean
}

/**
 * First the shards append their frames, then the log those that cover them: a log never refers to missing records. Without `shares` nothing
 * is appended, and the answer says where the journals end.
 */
export function takeFrames(
  { shards, log }: { readonly shards: readonly Link[]; readonly log: Link },
  shares: readonly CopiedFrames[] | undefined,
  give: (taken: Taken | Failed) => void,
): void {
  const found: FollowAnswer[] = []
  let open = shards.length
  const whenShardsHave = (): void => {
    const failed = found.find(({ ok }) => !ok)
    if (failed?.ok === false) return give(failed)
    ask(log, shares?.at(-1), (last) => (last.ok ? give(taken(found, last)) : give(last)))
  }
  for (const [shard, link] of shards.entries())
    ask(link, shares?.[shard], (answer) => {
      found[shard] = answer
      if (--open === 0) whenShardsHave()
    })
}

function taken(shards: readonly FollowAnswer[], log: Extract<FollowAnswer, { ok: true }>): Taken {
  const answers = shards.flatMap((each) => (each.ok ? [each] : []))
  const places = answers.map(({ place }) => place)
  return {
    ok: true,
    places: [...places, log.place],
    ends: { shards: places.map(({ last }) => last), log: log.place.last },
    acts: new Set(answers.flatMap(({ acts = [] }) => acts)),
    change: log.log?.change ?? 0,
    isOver: log.log?.isOver === true,
  }
}

function ask(link: Link, copied: CopiedFrames | undefined, answer: (found: FollowAnswer) => void): void {
  link.ask(['follow', copied] satisfies FollowAsk, (answered: Answered<FollowAnswer, undefined>) =>
    answer(answered.ok ? answered.body : noAnswer),
  )
}

const noAnswer: Failed = { ok: false, problem: 'a thread of this follower did not answer', isForGood: false }
