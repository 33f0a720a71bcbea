/**
 * Routes searches from a caller to the search threads. What a query says of author, room, and kind becomes fields of the read, days become
 * times, and each network has one search in progress at a time.
 */

import { fields, handlePattern, hashPattern } from '../../actors/kernel/fields.ts'
import { refusal } from '../../actors/kernel/refusals.ts'
import { shardOf } from '../../actors/shard.ts'
import { faultOf } from '../command/check.ts'
import type { Actors, Client } from '../command/ports.ts'
import { dataOf, type NotFound, type ReadRequest, type Take } from '../reads/read.ts'
import { FairQueue, type FairQueueOptions } from '../search/fair-queue.ts'
import { dayOf, type Restrictions, readQuery } from '../search/query.ts'
import { shownHits, unreadable } from '../search/reads.ts'
import { readTools } from '../tools/ask-index.ts'

type Answer = Take

/** Also if a shard was busy with something else for longer. */
const pauseMsMax = 1_000

type SearchesOptions = {
  readonly actors: Actors
  /** Undefined if networks need not wait for their own searches. */
  readonly queue: FairQueueOptions | undefined
}

export class Searches {
  readonly #actors: Actors
  /** Separate queues, because posts and tools are searched by separate threads. */
  readonly #posts: FairQueue | undefined
  readonly #tools: FairQueue | undefined
  /** Searches of private rooms, by shard, which runs them between everyone's writes: one at a time. */
  readonly #private: ({ readonly queues: readonly FairQueue[] } & Pick<FairQueueOptions, 'now' | 'timers'>) | undefined

  constructor({ actors, queue }: SearchesOptions) {
    this.#actors = actors
    this.#posts = queue && new FairQueue(queue)
    this.#tools = queue && new FairQueue(queue)
    this.#private = queue && {
      ...queue,
      queues: Array.from({ length: actors.shards }, () => new FairQueue({ ...queue, runningMax: 1 })),
    }
  }

  /** Answers the read if it is a search; false if it is not. */
  read(request: ReadRequest, client: Client, answer: Answer): boolean {
    const actors = this.#actors
    if (request.op === 'tools.search') {
      inTurn(this.#tools, client, answer, (give) => readTools(actors, request, give))
      return true
    }
    if (request.op !== 'events.list' || request.args.query === undefined) return false
    const read = readQuery(String(request.args.query))
    if (!read.ok) answer(unreadable(read.fault))
    else
      inTurn(this.#posts, client, answer, (give, done) =>
        restricted(actors, { request, restrictions: read.restrictions, refuse: give }, (asked) =>
          this.#findPosts(asked, give, (absent) => {
            // Public searches do not wait for private ones.
            done()
            this.#findPrivate(asked, client, absent, answer)
          }),
        ),
      )
    return true
  }

  /** Public events are found by the index and shown by the feed; events of a private room come from its shard. */
  #findPosts(request: ReadRequest, answer: Answer, otherwise: (absent: NotFound) => void): void {
    const actors = this.#actors
    actors.read({ ...request, op: 'search.begin' }, (begun) => {
      if (begun === undefined || (!begun.ok && 'refusal' in begun)) return answer(begun)
      if (!begun.ok) return otherwise(begun)
      const { ask, through } = dataOf(begun)
      actors.search(ask, through, (found) => {
        if (found === undefined || !found.ok) return answer(found)
        actors.read({ ...request, op: 'search.show', args: { ...request.args, ...shownHits(found, ask) } }, answer)
      })
    })
  }

  /** After each search, the shard is left to others for as long as it took. */
  #findPrivate(request: ReadRequest, client: Client, absent: NotFound, answer: Answer): void {
    const actors = this.#actors
    const shard = shardOf(String(request.args.room), actors.shards)
    const search = (give: Answer) =>
      actors.readPrivate(shard, request, (found) =>
        give(found !== undefined && !found.ok && 'absent' in found ? absent : found),
      )
    if (this.#private === undefined) return search(answer)
    const { queues, now, timers } = this.#private
    queues[shard]!.take(
      client,
      (done) => {
        const since = now()
        search((found) => {
          answer(found)
          timers.later(done, Math.min(pauseMsMax, now() - since))
        })
      },
      (seconds) => answer({ ok: false, refusal: tooMany(seconds) }),
    )
  }
}

/** `search` gets how to answer, and how to end its turn without an answer. */
function inTurn(
  queue: FairQueue | undefined,
  client: Client,
  answer: Answer,
  search: (give: Answer, done: () => void) => void,
): void {
  if (queue === undefined) return search(answer, () => {})
  queue.take(
    client,
    (done) =>
      search((found) => {
        done()
        answer(found)
      }, done),
    (seconds) => answer({ ok: false, refusal: tooMany(seconds) }),
  )
}

const tooMany = (seconds: number) =>
  refusal(
    'rate_limited',
    'searches of one network run one at a time, and so do those of private rooms; too many are waiting: wait retry_after seconds',
    undefined,
    seconds,
  )

type Restricting = {
  readonly request: ReadRequest
  readonly restrictions: Restrictions
  readonly refuse: Answer
}

/** Moves what the query says of author, room, and kind into the fields of the request. */
function restricted(
  actors: Actors,
  { request, restrictions, refuse }: Restricting,
  then: (asked: ReadRequest) => void,
): void {
  const args: Record<string, string | number> = { ...request.args }
  for (const name of ['room', 'kind'] as const) {
    const written = restrictions[name]?.toLowerCase()
    if (written === undefined) continue
    const fault = faultOf(name, fields[name], written)
    if (fault !== undefined) return refuse(unreadable(`${name}: in query must be followed by ${fields[name].rule}`))
    if ((args[name] ?? written) !== written)
      return refuse(unreadable(`query and the field ${name} have different values: send one of them`))
    args[name] = written
  }
  const { after, before } = restrictions
  if (after !== undefined) args.since = dayOf(after)!
  if (before !== undefined) args.until = dayOf(before)!
  const author = restrictions.from?.toLowerCase().replace(/^@/, '')
  if (author === undefined) return then({ ...request, args })
  withIdentity(actors, author, refuse, (target) => {
    if ((args.target ?? target) !== target)
      return refuse(unreadable('query and the field for the author name different identities: send one of them'))
    then({ ...request, args: { ...args, target } })
  })
}

function withIdentity(actors: Actors, author: string, refuse: Answer, then: (id: string) => void): void {
  if (new RegExp(hashPattern).test(author)) return then(author)
  if (!new RegExp(handlePattern).test(author))
    return refuse(unreadable('from: in query must be followed by a handle or by an identity id of 64 hex characters'))
  actors.read({ op: 'identity.get', args: { target: author }, reader: '' }, (found) => {
    if (found?.ok) return then(dataOf(found).identity.id)
    if (found === undefined || 'refusal' in found) return refuse(found)
    refuse({
      ok: false,
      refusal: refusal('not_found', `no identity has the handle ${author}, which query names`, 'query'),
    })
  })
}
