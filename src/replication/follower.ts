/**
 * Keeps the journals here equal to the leader's. It takes batches from the stream, and fetches over HTTP what the stream does
 * not have: the beginning, frames older than its first message, missing messages, and everything while the stream is out of
 * reach. Frame numbers decide what is applied, whichever way it came. If something does not follow what is here, nothing is
 * changed any more.
 */
import type { Cancel } from '../../actors/kernel/timers.ts'
import { type CopiedFrames, Diverged, type JournalPlace } from '../../storage/copied-frames.ts'
import { type Clock, pause } from '../clock.ts'
import type { Attachments } from './attachments.ts'
import { Assembly, type BatchHeader, type Opened, openPayload, type Part } from './batch.ts'
import { Halted } from './halted.ts'
import type { Ends } from './journals-out.ts'
import { type Leader, OutOfReach } from './leader.ts'
import { framesWaitMaxMs, type LeaderFacts } from './leader-answers.ts'
import { differingSettings, type SharedSettings } from './shared-settings.ts'
import type { StreamReader } from './stream-reader.ts'
import type { SealName, StreamSeal } from './stream-seal.ts'

/**
 * `behindMs`: how long the leader is known to have more than this follower, or to be out of reach; 0 if this follower has it
 * all; infinite if it has not heard from the leader. `problem`: why it applies nothing more. `obstacle`: why it may be behind,
 * until the next attempt succeeds. `leader`: the address being queried. `withoutStream`: why it does not read the stream, if
 * it may lead, for which it needs the stream.
 */
export type Standing = {
  readonly behindMs: number
  readonly problem: string | undefined
  readonly obstacle: string | undefined
  readonly leader: string | undefined
  readonly withoutStream: string | undefined
}

/** The stream, for reading. A simulation has its own. */
export type FollowedStream = Pick<StreamReader, 'close' | 'from' | 'last' | 'reportCopied'>

type FollowerOptions = {
  readonly clock: Clock
  readonly leader: Omit<Leader, 'blob' | 'close' | 'command'>
  /** The leader's facts when this follower was created. */
  readonly known: LeaderFacts
  /** Of this follower. */
  readonly settings: SharedSettings
  readonly attachments: Attachments
  /** Seals of the stream. */
  readonly seal: StreamSeal
  /** Undefined: only the leader is queried. */
  readonly openStream: (() => Promise<FollowedStream>) | undefined
  /** Where the journals end here, the shards by number and then the log. */
  readonly places: () => Promise<readonly JournalPlace[]>
  /** Applies what is new; resolves when it is durable and shown. Rejects with Diverged. */
  readonly take: (shares: readonly CopiedFrames[]) => Promise<readonly JournalPlace[]>
  /** Whether the disk has room for a batch in addition to the space reserved on it. */
  readonly hasRoom: () => boolean
  readonly tell: (standing: Standing) => void
  /** Stores the positions of the leader's deliveries. */
  readonly keepDeliveries: (text: string) => void
  /** Present if this follower may lead. */
  readonly vacancy?: Vacancy
  readonly report: (level: 'error' | 'warn' | 'info', event: string, facts: Readonly<Record<string, unknown>>) => void
}

/** How this follower finds out that the leader has been silent for long enough, or has handed over, and that it may take over. */
type Vacancy = {
  /** How long the leader must be silent. */
  readonly silentMs: number
  /**
   * How long this follower then waits for its turn, also after a hand-over. Followers wait different times, so that usually one
   * is first.
   */
  readonly turnMs: number
  /** This box's name in the stream if it has led before: after a hand-over, it does not try to lead again first. */
  readonly self: string | undefined
  /**
   * The number of the newest message, from the stream's leader, which proves that it accepts another. Rejects if none would be
   * accepted.
   */
  readonly newest: () => Promise<number>
  /** `after`: the newest message of the stream. */
  readonly found: (after: number) => void
}

/** What can fail and continue independently of the rest. */
type Activity = 'copying' | 'stream' | 'polling' | 'attachments'

const pollMs = 1_000
/** At most this much of the deliveries to webhooks is repeated if this follower takes over. */
const deliveriesEveryMs = 10_000
/** An answer of the leader about its position is valid this long. */
const knownForMs = 2_500
/** If the stream does not bring what the leader has, it is fetched after this long. */
const streamLateMs = 1_500
/** A leader that is starting has not released everything yet. */
const pollsAheadMax = 5
/** Answers of the leader that are remembered: those of ten minutes. */
const lackingMax = 600
/** A leader out of reach for this long is logged. */
const awayMs = 10_000
const nobody = 'nobody'
const retryMs = 500
/** When to retry a stream that was out of reach. */
const streamRetryMs = 5_000
/** If nothing came for this long, the servers are asked whether there is more. */
const quietMs = 6_000

export class Follower {
  readonly #options: FollowerOptions
  #places: readonly JournalPlace[] = []
  /** What the leader had and this follower lacks, and when it was asked; oldest answer first. */
  #lacking: { readonly ends: Ends; readonly askedAt: number }[] = []
  /** When it was last asked, with an answer. */
  #answeredAt: number | undefined
  readonly #startedAt: number
  /** What was last logged about the leader: its address, or that none answers; empty before the first. */
  #loggedLeader = ''
  #tookAt = 0
  #isPolling = false
  #isFetching = false
  /** Whether the leader's identity was checked since it was last out of reach. */
  #isRecognized = false
  #deliveriesAtMs = Number.NEGATIVE_INFINITY
  /** How often in a row the leader said that it has less than this follower. */
  #pollsAhead = 0
  #stream: FollowedStream | undefined
  /** The newest message that the stream has brought, and the header of the newest that a board wrote. */
  #lastReceived = 0
  #newest: BatchHeader | undefined
  /** Since when the stream has brought nothing that could be applied; undefined while something is being applied. */
  #quietSince: number | undefined
  /** When the servers were last asked whether there is more. */
  #quietAskedAt = Number.NEGATIVE_INFINITY
  #isCheckingSilence = false
  /** When leadership was last found vacant. If taking it failed, this is not retried every second. */
  #vacantAt = Number.NEGATIVE_INFINITY
  /** The newest message of the stream up to which everything is here. */
  #taken = 0
  /** The highest epoch known: answers with a lower one are ignored. */
  #epoch = 1
  /** The epoch of the newest message; undefined until the stream has been read that far. */
  #streamEpoch: number | undefined
  /** Serializes batches, whichever way they came. */
  #work: Promise<void> = Promise.resolve()
  #halted: Error | undefined
  /** What has failed, until it succeeds: each problem that was logged, the latest last. Several addresses have problems in turn. */
  readonly #failing = new Map<Activity, Set<string>>()
  /** Names of settings that the leader has otherwise, as last logged. */
  #differing = ''
  /** Why the leader did not answer when it was last asked. */
  #unanswered: string | undefined
  #isStopped = false
  readonly #stopped = Promise.withResolvers<void>()
  readonly #stopPolling: Cancel

  constructor(options: FollowerOptions) {
    this.#options = options
    this.#startedAt = options.clock.monotonicMs()
    this.#stopPolling = options.clock.every(() => this.#pollNow(), pollMs)
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    this.#stopPolling()
    this.#stopped.resolve()
    await this.#stream?.close()
    await this.#work
  }

  /** Runs until it is stopped, or its journals differ from the leader's. */
  async run(): Promise<void> {
    const { places, report } = this.#options
    while (!this.#isOver) {
      try {
        this.#places = await places()
        await this.#poll()
        await this.#session()
      } catch (error) {
        if (this.#isStopped) return
        this.#note('copying', error)
      }
      if (!this.#isOver) await this.#pause(retryMs)
    }
    if (this.#halted !== undefined) report('error', 'following.halted', { problem: this.#halted.message })
  }

  get #isOver(): boolean {
    return this.#isStopped || this.#halted !== undefined
  }

  #note(activity: Activity, error: unknown): void {
    const problem = error instanceof Error ? error.message : String(error)
    if (error instanceof Diverged || error instanceof Halted) this.#halted = error
    else this.#warn(activity, 'following.interrupted', problem)
    this.#reportStanding()
  }

  /** Logs a persisting problem only once. */
  #warn(activity: Activity, event: string, problem: string): void {
    if (!this.#isLogged(problem)) this.#options.report('warn', event, { problem })
    const problems = this.#failing.get(activity) ?? new Set()
    problems.delete(problem)
    this.#failing.set(activity, problems.add(problem))
  }

  /** Logs that the latest problem is over. */
  #succeeded(activity: Activity): void {
    const problem = latest(this.#failing.get(activity))
    if (problem === undefined) return
    this.#failing.delete(activity)
    if (!this.#isLogged(problem)) this.#options.report('info', 'following.resumed', { problem })
  }

  #isLogged(problem: string): boolean {
    return [...this.#failing.values()].some((problems) => problems.has(problem))
  }

  async #pause(ms: number): Promise<void> {
    await Promise.race([pause(this.#options.clock, ms), this.#stopped.promise])
  }

  /** One connection to the stream, or a while without one. */
  async #session(): Promise<void> {
    const { clock, openStream } = this.#options
    if (openStream !== undefined) {
      try {
        this.#stream = await openStream()
        return await this.#follow(this.#stream)
      } catch (error) {
        if (error instanceof Diverged || error instanceof Halted || this.#isStopped) throw error
        this.#warn('stream', 'following.without_stream', error instanceof Error ? error.message : String(error))
      } finally {
        await this.#stream?.close()
        this.#stream = undefined
        this.#newest = undefined
        this.#streamEpoch = undefined
        this.#quietSince = undefined
      }
    }
    const until = clock.monotonicMs() + streamRetryMs
    while (!this.#isOver && (openStream === undefined || clock.monotonicMs() < until)) {
      const askedAt = clock.monotonicMs()
      let isNew = false
      await this.#inTurn(async () => {
        isNew = await this.#copyNext(framesWaitMaxMs)
      })
      this.#reportStanding()
      // A leader of an older release does not wait.
      if (!isNew) await this.#pause(Math.max(0, askedAt + pollMs - clock.monotonicMs()))
    }
  }

  async #follow(stream: FollowedStream): Promise<void> {
    const newest = await stream.last()
    // What was published so far is in the leader's files. If they cannot be fetched, the stream is read from an earlier
    // message.
    const isCopied = await this.#inTurn(() => this.#copyAll()).then(
      () => true,
      (error: unknown) => {
        if (error instanceof OutOfReach) return false
        throw error
      },
    )
    // The newest message says how the leader answers, so it is read even though its frames are here.
    const from = Math.max(1, isCopied ? newest : Math.min(newest, this.#taken))
    const assembly = new Assembly(this.#options.seal)
    this.#lastReceived = from - 1
    this.#quietSince = this.#options.clock.monotonicMs()
    for await (const { seq, part } of stream.from(from)) {
      if (this.#lastReceived < from) {
        this.#options.report('info', 'following.begun', { from })
        this.#failing.delete('stream')
        this.#succeeded('copying')
      }
      this.#succeeded('stream')
      this.#quietSince = undefined
      if (part !== undefined) await this.#takeMessage(seq, part, assembly, seq >= newest)
      if (this.#isOver) return
      this.#lastReceived = seq
      this.#quietSince = this.#options.clock.monotonicMs()
    }
  }

  /** `isNewest`: no message followed it when the stream was opened. A recreated stream begins with the first epoch again. */
  async #takeMessage(seq: number, part: Part, assembly: Assembly, isNewest: boolean): Promise<void> {
    const { epoch } = part.header
    this.#epoch = isNewest ? epoch : Math.max(this.#epoch, epoch)
    if (isNewest) this.#streamEpoch = epoch
    this.#newest = part.header
    if (this.#isHere(part.header.journals)) {
      // Its key may have gone with the leader that had it. That of the newest message also opens what is published next.
      if (isNewest) await this.#sealed(part.header.seal).catch(() => {})
      assembly.skip(part)
      this.#taken = seq
      return
    }
    await this.#sealed(part.header.seal)
    const batch = assembly.add(part)
    if (batch === undefined) return
    await this.#inTurn(() => this.#take(openPayload(batch.header, batch.payload)))
    this.#taken = seq
  }

  /** Gets the key of a message from the leader if this follower lacks it, because it is new or the leader began another chain. */
  async #sealed(name: SealName): Promise<void> {
    const { seal } = this.#options
    if (seal.opens(name)) return
    await this.#askSeal()
    if (!seal.opens(name))
      throw new Error(
        'neither this follower nor its leader has the key to a message of the stream. Check that their clocks are right',
      )
  }

  /**
   * A new follower may have everything before the stream brings its first message. It needs the key by then, because its leader
   * may be gone.
   */
  async #ensureSeal(): Promise<void> {
    const { seal, openStream } = this.#options
    if (openStream !== undefined && !seal.isKnown) await this.#askSeal()
  }

  async #askSeal(): Promise<void> {
    const { seal, leader } = this.#options
    const given = await leader.seal()
    if (given !== undefined) seal.take(given)
  }

  async #inTurn(work: () => Promise<void>): Promise<void> {
    const done = this.#work.then(() => (this.#isOver ? undefined : work()))
    this.#work = done.catch(() => {})
    await done
  }

  /** Fetches until the leader has nothing more. */
  async #copyAll(): Promise<void> {
    let isNew = true
    while (isNew && !this.#isOver) isNew = await this.#copyNext(0)
  }

  /** Fetches the next frames; false if the leader has none, also after this many milliseconds. */
  async #copyNext(wait: number): Promise<boolean> {
    const found = await this.#options.leader.frames(this.#places, wait)
    if (found !== undefined) await this.#take(openPayload(found, found.payload))
    this.#succeeded('copying')
    return found !== undefined
  }

  async #take({ shares, files }: Opened): Promise<void> {
    if (shares.length !== this.#places.length)
      throw new Diverged('the leader has a different number of shards: create a new follower in an empty directory')
    if (this.#isBehind(shares)) await this.#copyAll()
    const isFresh = shares.map((share, index) => this.#isFresh(share, this.#places[index]!))
    if (!isFresh.includes(true)) return
    if (!this.#options.hasRoom())
      throw new Error('The disk of this follower is full: less than DISK_RESERVE_BYTES are free. Free up space there.')
    const named = shares.slice(0, -1).filter((_, index) => isFresh[index])
    await this.#options.attachments.fetchFor(named, files)
    this.#places = await this.#options.take(shares)
    this.#tookAt = this.#options.clock.monotonicMs()
    this.#reportCopied()
    this.#compare()
  }

  /** Whether there is a gap between the frames here and these. */
  #isBehind(shares: readonly CopiedFrames[]): boolean {
    return shares.some(({ first }, index) => first > this.#places[index]!.last + 1)
  }

  #isHere(journals: BatchHeader['journals']): boolean {
    const isSame = journals.length === this.#places.length
    return isSame && !journals.some((share, index) => this.#isFresh(share, this.#places[index]!))
  }

  /** Whether some of it is not here. */
  #isFresh({ last, chain, rolls }: Pick<CopiedFrames, 'last' | 'chain' | 'rolls'>, place: JournalPlace): boolean {
    if (last === place.last && chain !== place.chain)
      throw new Diverged(
        `journal ${place.id} differs between this follower and its leader at or before frame ${place.last}`,
      )
    return last > place.last || rolls.some((roll) => roll > place.last)
  }

  /** The leader may be waiting for this; it is repeated because a restarted leader has not heard it. */
  #reportCopied(): void {
    const lasts = this.#places.map(({ last }) => last)
    if (lasts.length > 0) this.#stream?.reportCopied({ log: lasts.at(-1)!, shards: lasts.slice(0, -1) })
  }

  #pollNow(): void {
    this.#reportCopied()
    void this.#poll()
    void this.#checkSilence()
  }

  /** Finds out why nothing comes: the servers have forgotten this follower, its link is cut, or the leader is gone. */
  async #checkSilence(): Promise<void> {
    const { vacancy, clock } = this.#options
    const [stream, since] = [this.#stream, this.#quietSince]
    if (stream === undefined || since === undefined || this.#isCheckingSilence || this.#isOver) return
    const now = clock.monotonicMs()
    const isVacant = now - since >= this.#vacantAfterMs
    if (now - (isVacant ? this.#vacantAt : Math.max(since, this.#quietAskedAt)) < quietMs) return
    this.#quietAskedAt = now
    this.#isCheckingSilence = true
    try {
      const last = await (vacancy?.newest() ?? stream.last())
      if (this.#quietSince !== since) return
      if (last !== this.#lastReceived) {
        const problem =
          last > this.#lastReceived
            ? 'the stream servers stopped sending messages: reconnecting'
            : 'the stream was recreated: reconnecting'
        this.#warn('stream', 'following.interrupted', problem)
        await stream.close()
        return
      }
      this.#succeeded('stream')
      if (isVacant) {
        this.#vacantAt = now
        vacancy?.found(last)
      }
    } catch (error) {
      // If the leader answers, it could not reach the stream: it gets the full time again once the servers take messages.
      if (this.#quietSince === since && this.#isLeaderThere) this.#quietSince = clock.monotonicMs()
      this.#warn('stream', 'following.without_stream', error instanceof Error ? error.message : String(error))
    } finally {
      this.#isCheckingSilence = false
    }
  }

  get #isLeaderThere(): boolean {
    return this.#answeredAt !== undefined && this.#options.clock.monotonicMs() - this.#answeredAt < knownForMs
  }

  /** How long a silence must last until leadership is vacant. */
  get #vacantAfterMs(): number {
    const { vacancy } = this.#options
    const { handedOver, leader, ack } = this.#newest ?? {}
    if (vacancy === undefined) return Number.POSITIVE_INFINITY
    if (handedOver === true && leader !== vacancy.self) return vacancy.turnMs
    return ack === 'quorum' ? vacancy.silentMs + vacancy.turnMs : Number.POSITIVE_INFINITY
  }

  /** Asks the leader for its position, and fetches what should have come. */
  async #poll(): Promise<void> {
    if (this.#isOver || this.#places.length === 0) return
    // Each address in turn may take seconds to respond.
    if (this.#isPolling) return this.#reportStanding()
    this.#isPolling = true
    const { clock, leader } = this.#options
    const askedAt = clock.monotonicMs()
    try {
      if (!this.#isRecognized) {
        this.#recognize(await leader.facts())
        await this.#ensureSeal()
      }
      const { address } = leader
      const { epoch, durable, ...ends } = await leader.ends()
      if (epoch < this.#epoch) {
        leader.skip(address)
        throw new OutOfReach(`another board has replaced the one at ${address}`)
      }
      this.#checkAhead(address, epoch, durable)
      this.#epoch = epoch
      this.#answeredAt = askedAt
      this.#unanswered = undefined
      this.#noteLeader(address)
      if (this.#lacking.length < lackingMax) this.#lacking.push({ ends, askedAt })
      this.#compare()
      void this.#fetchMissing()
      await this.#askDeliveries(askedAt)
      const lacksSince = this.#lacking[0]?.askedAt ?? askedAt
      const isLate = askedAt - Math.max(this.#tookAt, lacksSince) > streamLateMs
      if (isLate && this.#stream !== undefined) await this.#inTurn(() => this.#copyAll())
      this.#succeeded('polling')
    } catch (error) {
      this.#isRecognized = false
      if (error instanceof OutOfReach) this.#noteAway(error)
      else if (!this.#isOver) this.#note('polling', error)
      if (this.#halted !== undefined) await this.#stream?.close()
    } finally {
      this.#isPolling = false
      this.#reportStanding()
    }
  }

  #noteLeader(address: string): void {
    if (address !== this.#loggedLeader) this.#options.report('info', 'following.leader', { leader: address })
    this.#loggedLeader = address
  }

  #noteAway({ message }: OutOfReach): void {
    const { clock, report } = this.#options
    this.#unanswered = message
    if (this.#loggedLeader === nobody || clock.monotonicMs() - (this.#answeredAt ?? this.#startedAt) < awayMs) return
    this.#loggedLeader = nobody
    report('warn', 'following.without_leader', { problem: message })
  }

  /** Runs independently of the polls: a file that does not come delays nothing else. */
  async #fetchMissing(): Promise<void> {
    if (this.#isFetching) return
    this.#isFetching = true
    try {
      await this.#options.attachments.fetchMissing()
      this.#succeeded('attachments')
    } catch (error) {
      if (!this.#isOver) this.#note('attachments', error)
    } finally {
      this.#isFetching = false
    }
  }

  async #askDeliveries(now: number): Promise<void> {
    if (now < this.#deliveriesAtMs) return
    this.#deliveriesAtMs = now + deliveriesEveryMs
    const found = await this.#options.leader.deliveries()
    if (found !== undefined) this.#options.keepDeliveries(found)
  }

  #recognize(leader: LeaderFacts): void {
    const { known, settings, report } = this.#options
    checkSame(known, leader, this.#options.leader.address)
    this.#isRecognized = true
    const note =
      'The leader has a different cursor.key. Restart this follower: until then each refuses the cursors of the other.'
    if (leader.readKey !== known.readKey) report('warn', 'following.other_read_key', { note })
    this.#noteSettings(differingSettings(settings, leader.settings ?? {}).join(', '))
  }

  #noteSettings(differing: string): void {
    const note =
      'These settings differ from those of the leader, so this follower answers differently. Set them here as on the leader, and restart this follower.'
    if (differing !== '' && differing !== this.#differing)
      this.#options.report('warn', 'following.other_settings', { settings: differing, note })
    this.#differing = differing
  }

  /**
   * A leader cannot have lost what it has released. If this follower has more, another box may have replaced the one that
   * answers, so each other address is asked first. If none of them leads, or the stream says that this one does, an old copy
   * was restored there.
   */
  #checkAhead(address: string, epoch: number, { log, shards }: Ends): void {
    const { leader } = this.#options
    const isAhead = this.#places.some(({ last }, index) => last > ([...shards, log][index] ?? 0))
    this.#pollsAhead = isAhead ? this.#pollsAhead + 1 : 0
    if (!isAhead) return leader.select(address)
    if (epoch !== this.#streamEpoch && leader.skip(address))
      throw new OutOfReach(
        `${address} has less than this follower: another board has replaced it, or an old copy was restored there. Trying the other addresses in FOLLOW.`,
      )
    if (this.#pollsAhead < pollsAheadMax) return
    throw new Diverged(
      'the leader has less than this follower: if a backup of the leader was restored, empty this directory and start the follower again',
    )
  }

  /** Forgets answers that this follower has caught up with. */
  #compare(): void {
    const lacked = this.#lacking.length
    while (this.#lacking.length > 0 && this.#hasAll(this.#lacking[0]!.ends)) this.#lacking.shift()
    if (lacked > 0 && this.#lacking.length === 0) this.#reportStanding()
  }

  #hasAll({ log, shards }: Ends): boolean {
    return [...shards, log].every((end, index) => end <= (this.#places[index]?.last ?? 0))
  }

  #reportStanding(): void {
    const { tell, leader, vacancy } = this.#options
    const [failing] = this.#failing.values()
    const obstacle = this.#unanswered ?? latest(failing)
    const withoutStream = vacancy && latest(this.#failing.get('stream'))
    tell({ behindMs: this.#behindMs, problem: this.#halted?.message, obstacle, leader: leader.leading, withoutStream })
  }

  get #behindMs(): number {
    const now = this.#options.clock.monotonicMs()
    const [lacking] = this.#lacking
    if (lacking !== undefined) return now - lacking.askedAt
    if (this.#answeredAt === undefined) return Number.POSITIVE_INFINITY
    return now - this.#answeredAt < knownForMs ? 0 : now - this.#answeredAt
  }
}

function latest(problems: ReadonlySet<string> = new Set()): string | undefined {
  return [...problems].at(-1)
}

/**
 * Throws Halted if the board at this address is not the one that is followed, and Diverged if it has become one for which cursors and
 * places here mean nothing.
 */
function checkSame({ facts: known }: LeaderFacts, { facts }: LeaderFacts, address: string): void {
  if (facts.service_id !== known.service_id)
    throw new Halted(
      `the board at ${address} is ${facts.service_id}, and this follower is of ${known.service_id}: correct FOLLOW and restart this follower. Only if ${known.service_id} is gone and you want to follow ${facts.service_id}, use an empty directory`,
    )
  const names = ['origin', 'generation', 'layout', 'shards', 'delegations_ended'] as const
  const changed = names.filter((name) => facts[name] !== known[name])
  if (changed.length > 0)
    throw new Diverged(
      `the leader was restored from a backup, resharded or created again (${changed} changed): empty the directory of this follower and start it again`,
    )
}
