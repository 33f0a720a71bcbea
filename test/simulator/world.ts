/**
 * One run: people use a board and it fails under them, step by step. Every step draws its chances from the seed and its own number, so that
 * a run without some of its steps is still much the same run: this is how a failure is shrunk.
 */
import { createHash } from 'node:crypto'
import { pause } from '../../src/clock.ts'
import { unanswered } from '../../src/command/reply.ts'
import { type Reply as Envelope, envelopeOf } from '../../src/format/reply.ts'
import type { Outgoing } from '../../src/outgoing/request.ts'
import type { ThreadName } from '../../src/program.ts'
import { type FollowingThread, following } from '../../src/workers/following.ts'
import { publishing, type ReplicationThread } from '../../src/workers/replication.ts'
import type { ThreadPlatform } from '../../src/workers/thread.ts'
import type { FilesCopy } from '../support/memory-disk.ts'
import { SeededRandom } from '../support/seeded-random.ts'
import { Simulation, type Starter } from '../support/simulation.ts'
import { acts, type Command, deliveryActs, recordPost } from './acts.ts'
import { type Ack, address, type Layout, replicaKey, SimulatedBoard, Violation } from './board.ts'
import { type Ask, checkAll, checkReadable, compareBoards } from './checks.ts'
import { type FaultKind, faults, singleBoxFaults } from './faults.ts'
import { Follower } from './followers.ts'
import { checkDelivery, undelivered } from './hooks.ts'
import { type HostRequest, SimulatedHosts } from './hosts.ts'
import { type Hook, Model, type Reply, type Sent, secretMark } from './model.ts'
import { Network } from './network.ts'
import { settledMs } from './payments.ts'
import { type Fields, makePeople, type Person, Signatures, type Signed, signed, signerOf } from './people.ts'
import { SecondBox } from './second-box.ts'
import { SimulatedServers } from './servers.ts'
import { TailReader } from './tails.ts'
import { takeOvers } from './take-overs.ts'
import { type ReceivedDelivery, SimulatedTargets } from './targets.ts'
import { callOf, toolActs } from './tool-acts.ts'
import { answersDiffer, checkRequest, checkTools } from './tool-checks.ts'

/** Per board: more make its starts slow, and fewer leave little to go wrong. */
export const stepsEach = 400

export type Run = {
  readonly seed: string
  readonly steps: number
  readonly layout?: Layout
  /** For any layout. */
  readonly ack?: Ack
  /** All other steps are left out. */
  readonly only?: ReadonlySet<number>
  /** Kinds of faults that do not happen. */
  readonly off: ReadonlySet<string>
}

export type Found = { readonly step: number; readonly message: string; readonly stack: string }

export type Outcome = {
  readonly found?: Found
  /** Hash of everything that was answered. */
  readonly trace: string
  /** Steps that were done, in words. */
  readonly story: readonly string[]
  readonly counts: ReadonlyMap<string, number>
  readonly seen: ReadonlyMap<string, number>
  readonly struck: ReadonlyMap<string, number>
}

const layouts: readonly Layout[] = [
  { placement: 'back', shards: 1 },
  { placement: 'threads', shards: 1 },
  { placement: 'threads', shards: 2 },
  { placement: 'clerks', shards: 3 },
]
/** One in this many boards is replicated, and one in this many of these waits for a copy. */
const replicatedEvery = 4
const waitingEvery = 3
function layoutOf(chance: SeededRandom): Layout {
  const layout = chance.pick(layouts)!
  if (chance.below(replicatedEvery) !== 0) return layout
  return { ...layout, ack: chance.below(waitingEvery) === 0 ? 'copy' : 'quorum' }
}

const threads = ['shard', 'log', 'back', 'feed', 'clerk', 'tools'] as const
const pendingMax = 16
/** Seconds after which a follower answers a write whether it shows it or not. */
const shownWithin = 9
/** Seconds after which a follower without contact to its leader shows nothing private. */
const privateWithin = 8
/** How often to check whether a follower has everything. */
const catchUpTries = 40
const tailsMax = 4
/** How often to check whether a tail has everything. */
const tailTries = 60
/** Minutes in which a follower has to remove what its leader has removed. */
const removalTries = 3
/** How often to check whether the tools directory answers. */
const directoryTries = 40
/** How often to check whether all webhooks have received everything. */
const deliveryTries = 30
/** A decision of the registry without an answer holds up signed reads until the registry has answered. */
const overloadTries = 60

type StepKind = { readonly name: string; readonly weight: number; readonly go: (world: World) => Promise<void> | void }

const timeSteps: readonly StepKind[] = [
  { name: 'settle', weight: 60, go: (world) => world.settle() },
  { name: 'a moment', weight: 60, go: (world) => world.wait(1 + world.chance.below(2_000)) },
  { name: 'minutes', weight: 4, go: (world) => world.jump(60 + world.chance.below(600)) },
  { name: 'hours', weight: 1, go: (world) => world.jump(3_600 + world.chance.below(40_000)) },
  { name: 'poll', weight: 30, go: (world) => world.poll() },
  { name: 'follow a tail', weight: 20, go: (world) => world.followTail() },
  { name: 'audit', weight: 1, go: (world) => world.audit() },
]

const allActs = { ...acts, ...toolActs }

function kindsOf(off: ReadonlySet<string>, isReplicated: boolean): readonly StepKind[] {
  const happening = Object.entries(allActs).filter(([name]) => !(isReplicated && deliveryActs.has(name)))
  const ofActs = happening.map(([name, { weight, act }]): StepKind => {
    return {
      name,
      weight,
      go: (world) => {
        world.model.now = world.now
        return world.act(name, act(world.model, world.chance, world.step))
      },
    }
  })
  const happen = Object.entries(isReplicated ? { ...faults, ...takeOvers } : faults)
  const ofFaults = happen.filter(([name]) => !off.has(name) && !(isReplicated && singleBoxFaults.has(name)))
  const failing = ofFaults.map(
    ([name, fault]): StepKind => ({ name, weight: fault.weight, go: (world) => world.fault(fault) }),
  )
  return [...ofActs, ...timeSteps, ...failing]
}

/** Machines other than those of the board. */
type OtherMachines = { readonly targets: SimulatedTargets; readonly hosts: SimulatedHosts }

export class World {
  readonly sim: Simulation
  readonly board: SimulatedBoard
  readonly model: Model
  /** Of a replicated board. */
  readonly second: SecondBox | undefined
  readonly targets: SimulatedTargets
  readonly hosts: SimulatedHosts
  readonly chance = new SeededRandom('')
  readonly counts = new Map<string, number>()
  readonly story: string[] = []
  readonly #seed: string
  readonly #signatures: Signatures
  readonly #trace = createHash('sha256')
  readonly #followers: readonly Follower[]
  #tails: readonly TailReader[] = []
  step = 0
  #pending: Promise<void>[] = []
  #queries = 0
  /** Commands sent in an earlier one are no longer waited for. */
  #life = 0
  #failed: { readonly error: unknown } | undefined
  /** All files as they were at some time, and how many leaves the log had. */
  copy: { readonly size: number; readonly files: FilesCopy } | undefined
  /** The power goes off this many disk operations after this many more commands were accepted. */
  #cut: { answers: number; readonly operations: number } | undefined
  /** Reads may answer `internal`, because of a disk fault. */
  mayFault = false

  private constructor(
    seed: string,
    signatures: Signatures,
    sim: Simulation,
    board: SimulatedBoard,
    model: Model,
    second: SecondBox | undefined,
    others: OtherMachines,
  ) {
    this.#seed = seed
    this.second = second
    this.targets = others.targets
    this.hosts = others.hosts
    this.#signatures = signatures
    this.sim = sim
    this.board = board
    this.model = model
    this.#followers = [new Follower(undefined), new Follower(model.people[1])]
  }

  static async begin({ seed, layout, ack }: Run): Promise<World> {
    const signatures = new Signatures()
    const tasks = { verifyBatch: (letter: unknown) => signatures.judge(letter as ArrayBuffer) }
    let servers: SimulatedServers | undefined
    let network: Network | undefined
    const replication = (data: unknown, here: ThreadPlatform) =>
      publishing(data as ReplicationThread, here, servers!.open)
    const follower = (data: unknown, here: ThreadPlatform) =>
      following(data as FollowingThread, here, {
        leader: network!.leader(here.clock),
        openStream: () => servers!.reader(here.clock),
        newest: () => Promise.reject(new Error('no box leads by itself here')),
      })
    let targets: SimulatedTargets | undefined
    const delivery = (data: unknown, here: ThreadPlatform) => targets!.thread(data, here)
    const own = new Map<ThreadName, Starter>([
      ['replication', replication],
      ['delivery', delivery],
      ['following', follower],
    ])
    const sim = await Simulation.begin({ seed: 0, tasks, threads: own }, threads)
    servers = new SimulatedServers(sim)
    let world: World | undefined
    targets = new SimulatedTargets(sim, (letter) => world!.#onDelivery(letter))
    const hosts = new SimulatedHosts(sim, (visit) => world!.#onHostRequest(visit))
    sim.reseed(seed)
    const people = makePeople()
    const chosenLayout = { ...(layout ?? layoutOf(new SeededRandom(seed))), ...(ack === undefined ? {} : { ack }) }
    const shared = { layout: chosenLayout, operators: [people[0]!.id], heads: new Map<number, string>() }
    const board = new SimulatedBoard({ ...shared, machine: sim, outgoing: (clock) => hosts.outgoing(clock) })
    network = new Network(sim, { address, key: replicaKey, replicaRoute: () => board.replicaRoute })
    const second =
      chosenLayout.ack !== undefined
        ? new SecondBox(
            sim,
            new SimulatedBoard({
              ...shared,
              machine: sim.addMachine(),
              leader: (clock) => network!.leader(clock),
              outgoing: () => noOutgoing,
            }),
            { servers, network },
          )
        : undefined
    world = new World(seed, signatures, sim, board, new Model(people, hosts.network), second, { targets, hosts })
    return world
  }

  count(name: string): void {
    this.counts.set(name, (this.counts.get(name) ?? 0) + 1)
  }

  get trace(): string {
    return this.#trace.copy().digest('hex')
  }

  /** Adds its outcome to the trace. */
  note(what: string): void {
    this.#trace.update(`${this.step} ${what}\n`)
  }

  get now(): number {
    return this.sim.platform.clock.wallSeconds()
  }

  // ---- commands

  async act(name: string, command: Command | undefined): Promise<void> {
    if (command === undefined) return
    this.story.push(`${this.step}: ${name}: ${describe(command)}`)
    this.#send(name, command)
    if (this.#pending.length >= pendingMax) return this.settle()
    if (this.chance.below(2) === 0) await this.#until(pause(this.sim.platform.clock, this.chance.below(8)))
  }

  #send(name: string, command: Command): void {
    const {
      by,
      fields,
      resend,
      sameRequestAs,
      coSigner,
      nonce = `nonce-${this.step}-of-the-simulation`,
      key = by.key,
    } = command
    if (resend !== undefined) return this.#track(this.#resend(resend))
    const signer = typeof key === 'string' ? signerOf(key) : by.keys[key]!
    const second =
      coSigner === undefined ? undefined : typeof coSigner === 'string' ? signerOf(coSigner) : by.keys[coSigner]!
    const signatures = this.#signatures
    const stamp = { serviceId: this.board.serviceId, timestamp: this.now, nonce, signatures }
    const made = signed(fields, signer, stamp, second)
    if (this.model.sent.has(made.id)) return
    if (sameRequestAs !== undefined) return this.#track(this.#sendSameRequest(made, sameRequestAs))
    const sent: Sent = {
      ...made,
      name,
      by,
      fields,
      at: this.now,
      number: this.model.sent.size,
      standing: 'open',
      mayBeDone: false,
      ...(command.onAccepted === undefined ? {} : { onAccepted: command.onAccepted }),
      ...(command.holds === undefined ? {} : { holds: command.holds }),
    }
    this.model.sent.set(sent.id, sent)
    if (fields.operation === 'webhook.create') this.model.hooks.set(sent.id, hookOf(sent))
    this.#track(this.#deliver(sent, command.refusedAs))
  }

  #track(work: Promise<void>): void {
    // A violation counts, also when the board goes down before it is awaited.
    const tracked = work.catch((error: unknown) => {
      this.#failed ??= { error }
    })
    this.#pending.push(tracked)
  }

  /** Throws what was found meanwhile. */
  throwFound(): void {
    if (this.#failed !== undefined) throw this.#failed.error
  }

  async #deliver(sent: Sent, refusedAs?: readonly string[]): Promise<void> {
    const life = this.#life
    const toSecond = this.#goesToSecond()
    const answer = await this.#sendTo(toSecond, sent.body)
    // It was no longer waited for.
    if (life !== this.#life) return
    if (answer === undefined) {
      sent.standing = 'doubtful'
      sent.mayBeDone = true
      return
    }
    const reply = envelopeOf(answer) as Reply
    if (
      refusedAs !== undefined &&
      sent.holds?.() !== false &&
      (reply.ok ||
        !(
          refusedAs.length === 0 ||
          hasAllowedCode(reply, [...refusedAs, ...signerCodes, ...(this.mayFault ? ['internal'] : [])])
        ))
    )
      throw new Violation(
        `${reply.ok ? 'accepted, but should be refused' : `refused for the wrong reason: ${reply.error?.code}`}: ${sent.name}`,
      )
    this.#recordReply(sent, reply)
    if (toSecond && isPublicPost(sent, this.model)) await this.#checkShown(sent)
  }

  /** A person who wrote through a follower reads there what they wrote. */
  async #checkShown({ id, reply, at }: Sent): Promise<void> {
    const life = this.#life
    if (reply?.data?.event === undefined || this.now - at > shownWithin) return
    const found = await this.#askSecond({ operation: 'event.get', event_id: id }).catch(ignoreUnanswered)
    if (life !== this.#life || found === undefined || found.ok || hasAllowedCode(found, ['internal'])) return
    throw new Violation(`a follower answers a post that it does not show: ${found.error?.code}`)
  }

  /** Whether the next request goes to the follower. */
  #goesToSecond(): boolean {
    return this.second?.isRunning === true && this.chance.below(3) === 0
  }

  /** A follower forwards a command, and answers when it shows the effect. */
  #sendTo(toSecond: boolean, body: Buffer): Promise<Envelope | undefined> {
    if (!toSecond) return this.board.send(body)
    this.count('commands to a follower')
    return this.second!.ask((board) => board.send(body))
  }

  #recordReply(sent: Sent, reply: Reply): void {
    const { id, fields, onAccepted } = sent
    const code = reply.error?.code
    this.note(`${id} ${code ?? JSON.stringify(reply.data?.receipt)}`)
    this.count(`${fields.operation} ${code ?? 'accepted'}`)
    if (code === 'internal' && !this.mayFault)
      throw new Violation(`${fields.operation} is answered with internal: ${reply.error?.message}`)
    // A refusal because of overload does not tell what became of it before.
    if (!reply.ok && sent.mayBeDone && hasAllowedCode(reply, ['internal'])) {
      sent.standing = 'doubtful'
      return
    }
    const { receipt } = reply.data ?? {}
    if (isPublicPost(sent, this.model) && receipt !== undefined && receipt.duplicate !== true)
      if (receipt.log_index === undefined || receipt.checkpoint === undefined)
        throw new Violation('a public post is answered before the log has it')
    if (reply.ok) this.#checkCopied(sent, reply)
    sent.reply = reply
    sent.standing = reply.ok ? 'accepted' : 'refused'
    sent.answeredAt ??= this.model.sent.size
    if (!reply.ok) this.model.hooks.delete(id)
    if (reply.data?.receipt === undefined) return
    const { checkpoint } = reply.data.receipt
    if (checkpoint !== undefined) this.board.recordHead(checkpoint)
    onAccepted?.(reply.data, this.model)
    if (this.#cut !== undefined && --this.#cut.answers === 0) this.sim.memory.cutAfter(this.#cut.operations)
  }

  /** If the board waits for a copy, the follower has each write on its disk. Frames found at a start wait for none. */
  #checkCopied({ id, fields }: Sent, { data }: Reply): void {
    const { receipt } = data ?? {}
    // A command that changed nothing leaves no record.
    if (fields.operation === 'inbox.seen') return
    if (!this.board.waitsForCopy || receipt === undefined || receipt.duplicate === true) return
    if (!this.second!.board.machine.memory.hasDurably(Buffer.from(id, 'hex')))
      throw new Violation('a write is answered before any follower has it on its disk')
    this.count('writes that a follower has')
  }

  /** The same bytes as before. */
  async #resend(old: Sent): Promise<void> {
    const life = this.#life
    const answer = await this.#sendTo(this.#goesToSecond(), old.body)
    if (answer !== undefined && life === this.#life) this.#checkSameAnswer(envelopeOf(answer) as Reply, old)
  }

  #checkSameAnswer(reply: Reply, old: Sent): void {
    const { operation } = old.fields
    // A command that changed nothing leaves no record.
    if (operation === 'inbox.seen') return
    if (!reply.ok && hasAllowedCode(reply, [])) return
    if (reply.error?.code === 'internal' && this.mayFault) return
    // A read is not remembered: after a time its signature is too old.
    const isRead = old.reply?.ok === true && old.reply.data?.receipt === undefined
    if (isRead && !reply.ok && hasAllowedCode(reply, ['stale_timestamp', ...signerCodes, 'private_room', 'not_found']))
      return
    if (!reply.ok) throw new Violation(`the same ${operation} again is refused as ${reply.error?.code}`)
    const [first, second] = [old.reply?.data?.receipt, reply.data?.receipt]
    if (first === undefined || second === undefined) return
    this.note(`again ${second.event_id} ${second.accepted_at}`)
    if (second.duplicate !== true) throw new Violation(`the same ${operation} again is applied twice`)
    if (second.event_id !== first.event_id || second.accepted_at !== first.accepted_at)
      throw new Violation(`the same ${operation} again is answered otherwise`)
    if (first.log_index !== undefined && second.log_index !== undefined && first.log_index !== second.log_index)
      throw new Violation(`the same ${operation} again has another leaf`)
    if (answersDiffer(old, reply, this.now - old.at))
      throw new Violation(`the same ${operation} again says something else`)
    if (second.checkpoint !== undefined) this.board.recordHead(second.checkpoint)
  }

  /** The same content under the same request id. */
  async #sendSameRequest({ body }: Signed, old: Sent): Promise<void> {
    const answer = await this.board.send(body)
    if (answer === undefined) return
    const reply = envelopeOf(answer) as Reply
    // Content redacted since cannot be compared.
    if (reply.error?.code === 'request_id_reused' && this.model.mayBeRemoved(old.id)) return
    this.#checkSameAnswer(reply, old)
  }

  readonly ask: Ask = (fields, by) => this.#ask(fields, by, (body) => this.board.send(body))

  /** Sends to the follower. */
  readonly #askSecond: Ask = (fields, by) =>
    this.#ask(fields, by, (body) => this.second!.ask((board) => board.send(body)))

  /** As clients do: a read that is refused as overloaded is sent again when the refusal says. */
  #patient(ask: Ask): Ask {
    return async (fields, by) => {
      for (let tries = 1; ; tries++) {
        const reply = await ask(fields, by)
        if (reply.error?.code !== 'overloaded' || tries === overloadTries) return reply
        await pause(this.sim.platform.clock, 1_000 * (reply.error.retry_after ?? 1))
      }
    }
  }

  /** A follower that has not heard of its leader for a while cannot know who may read by now. */
  async readPrivateFromFollower(): Promise<void> {
    const { second } = this
    const room = this.chance.pick([...this.model.rooms.values()].filter(({ isPrivate }) => isPrivate))
    if (room?.owner === undefined || !second?.isRunning) return
    const reader = this.#tailOf(room.name, room.owner)
    const token = await this.#readToken(reader, this.ask)
    if (!second.isRunning) return
    second.network.cut = /./
    await this.wait(1_000 * privateWithin)
    if (!second.isRunning || second.network.cut === undefined) return
    const asked = this.#askSecond({ operation: 'events.list', room: room.name }, room.owner).catch(ignoreUnanswered)
    const found = await this.sim.until(asked)
    if (found === 'dark') return this.recover()
    if (found?.ok) throw new Violation('a follower that is behind shows what is private')
    this.count('private reads of a follower that is behind')
    if (token === undefined || !second.isRunning || second.network.cut === undefined) return
    reader.connect(second.board, token)
    await this.wait(1_000)
    reader.leave()
    if (reader.hasAny) throw new Violation('a tail of a follower that is behind shows what is private')
    this.count('private tails of a follower that is behind')
  }

  async #ask(
    fields: Fields,
    by: Person | undefined,
    send: (body: Buffer) => Promise<Envelope | undefined>,
  ): Promise<Reply> {
    const stamp = {
      serviceId: this.board.serviceId,
      timestamp: this.now,
      nonce: `nonce-${++this.#queries}-of-a-question`,
      signatures: this.#signatures,
    }
    const body = by === undefined ? Buffer.from(JSON.stringify(fields)) : signed(fields, by.keys[by.key]!, stamp).body
    const answer = await send(body)
    if (answer === undefined) throw new Unanswered()
    const reply = envelopeOf(answer) as Reply
    if (reply.error?.message === unanswered.message) throw new Unanswered()
    return reply
  }

  /** A webhook delivery arrived. */
  #onDelivery(letter: ReceivedDelivery): void {
    try {
      this.count('deliveries')
      checkDelivery(letter, this.model)
    } catch (error) {
      this.#failed ??= { error }
    }
  }

  /** A request to a host of tools arrived. */
  #onHostRequest(visit: HostRequest): void {
    try {
      this.count(visit.payment === undefined ? 'requests to tools' : 'payments sent to tools')
      checkRequest(visit, this.model, this.now)
    } catch (error) {
      this.#failed ??= { error }
    }
  }

  // ---- time

  /** No fault is pending, and nothing is slow. */
  heal(): void {
    this.sim.memory.heal()
    this.sim.delayMs = 5
    this.second?.heal()
    this.targets.heal()
    this.hosts.heal()
  }

  shortPause(): Promise<void> {
    return pause(this.sim.platform.clock, this.chance.below(8_000))
  }

  async wait(ms: number): Promise<void> {
    await this.#until(pause(this.sim.platform.clock, ms))
  }

  /** The machine sleeps for this long, with nothing in progress: overdue work is done when it wakes. */
  async jump(seconds: number): Promise<void> {
    await this.settle()
    this.sim.sleep(1_000 * seconds)
    await this.wait(10)
  }

  /** Waits until everything in progress is answered; commands without an answer are sent again. */
  async settle(): Promise<void> {
    const pending = this.#pending.splice(0)
    if (!(await this.#until(Promise.all(pending)))) return
    await this.#resendUnanswered()
  }

  async poll(): Promise<void> {
    const follower = this.chance.pick(this.#followers)!
    const ask = this.#goesToSecond() ? this.#askSecond : this.ask
    await this.#until(unlessNoAnswer(follower.poll(ask, this.model)))
  }

  /** One of them moves to the follower. */
  async followOnSecond(): Promise<void> {
    if (this.second?.isRunning) await this.#connect(this.#someTail(), true)
  }

  #someTail(): TailReader {
    return this.#tails.length < tailsMax ? this.#newTail() : this.chance.pick(this.#tails)!
  }

  /** One of them follows on some box, leaves, or reads slowly for a while. */
  async followTail(): Promise<void> {
    const reader = this.#someTail()
    if (!reader.isOpen) return this.#connect(reader, this.chance.below(2) === 0)
    const what = this.chance.below(4)
    if (what === 0) reader.leave()
    else reader.isSlow = what === 1
  }

  #newTail(): TailReader {
    const room = this.chance.pick([...this.model.rooms.values()])!
    const reader = this.#tailOf(room.name, room.isPrivate ? this.chance.pick([...room.everAllowed]) : undefined)
    this.#tails = [...this.#tails, reader]
    return reader
  }

  #tailOf(room: string, by: Person | undefined): TailReader {
    return new TailReader({ room, by }, this.sim, this.model, {
      onEvent: (from) => this.count(from === this.board ? 'events of tails' : 'events of tails of a follower'),
      onError: (error) => {
        this.#failed ??= { error }
      },
    })
  }

  /** A box that is behind may not know the newest event that the reader has, or that they may read the room. */
  async #connect(reader: TailReader, toSecond: boolean): Promise<void> {
    const isThere = toSecond && this.second?.isRunning === true
    const token = await this.#readToken(reader, isThere ? this.#askSecond : this.ask)
    if (reader.by !== undefined && token === undefined) return
    if (isThere && !this.second!.isRunning) return
    this.count(isThere ? 'tails of a follower' : 'tails')
    reader.connect(isThere ? this.second!.board : this.board, token)
    reader.isSlow = this.chance.below(3) === 0
  }

  /** Undefined: the room is public, or they get none. */
  async #readToken({ room, by }: TailReader, ask: Ask): Promise<string | undefined> {
    if (by === undefined) return undefined
    let token: string | undefined
    const asked = ask({ operation: 'room.read_token', room, ttl: 600 }, by).then(({ data }) => {
      token = data?.token as string | undefined
    })
    await this.#until(unlessNoAnswer(asked))
    return token
  }

  /** At rest, on any box: every tail has everything after a while. Former members are refused. */
  async #checkTails(): Promise<void> {
    for (const reader of this.#tails) {
      const mayBeOut = reader.by !== undefined
      for (let tries = 0; !reader.hasAll; tries++) {
        if (!this.model.isCertain || (mayBeOut && !reader.isOpen && tries > 2)) break
        if (tries === tailTries) throw new Violation('a tail misses an event')
        if (!reader.isOpen) await this.#connect(reader, this.chance.below(2) === 0)
        reader.isSlow = false
        await this.wait(500)
      }
    }
  }

  /** Checks everything. The board is at rest meanwhile. */
  async audit(): Promise<void> {
    await this.settle()
    this.heal()
    // Lost messages to the stream are published again after some seconds, one after the other.
    await this.wait(this.second === undefined ? 1_500 : 60_000)
    if (!this.model.isCertain) await this.#resendUnanswered()
    if (!this.model.isCertain) return
    // Until a follower runs, such a board answers no write, and reads that depend on one wait.
    if (this.board.waitsForCopy && !(await this.#startFollower())) return
    this.count('audits')
    const { board, model } = this
    const ask = this.#patient(this.ask)
    await this.#until(checkAll({ board, model, ask, reader: this.#signatures.reader }))
    for (const follower of this.#followers) await this.#until(follower.check(ask, model))
    await this.#checkTools()
    await this.#checkTails()
    await this.#deliverAll()
    await this.compareFollower()
  }

  /** With nothing in progress: a follower has everything after a while, and answers as the leader does. */
  async compareFollower(): Promise<void> {
    const { second } = this
    if (!second?.isRunning) return
    await this.settle()
    this.heal()
    const { machine } = second.board
    const { life } = machine
    const isSame = () => second.isRunning && machine.life === life
    for (let tries = 0; isSame(); tries++) {
      await this.wait(3_000)
      if (!isSame()) return
      if (second.board.behindMs === 0 && second.board.size === this.board.size) break
      if (tries === catchUpTries) throw new Violation('a follower does not catch up')
    }
    if (!this.model.isCertain) return
    const compared = compareBoards({
      model: this.model,
      ask: this.#patient(this.ask),
      askSecond: this.#patient(this.#askSecond),
      exported: () => this.board.exported(),
      exportedSecond: async () => (await second.ask((board) => board.exported())) ?? throwError(new Unanswered()),
    })
    if (!(await this.#until(unlessNoAnswer(compared))) || !isSame()) return
    // A start removes what is not needed, and a running follower removes it with the texts that it destroys every minute.
    for (let tries = 0; ; tries++) {
      const files = this.board.attachments
      if ([...second.board.attachments].every((file) => files.has(file))) break
      if (tries === removalTries) throw new Violation('a follower keeps an attachment that its leader has no more')
      await this.wait(60_000)
      if (!isSame()) return
    }
    this.count('followers compared')
  }

  /** Once the directory answers: after a fault it pauses for a minute. */
  async #checkTools(): Promise<void> {
    const { model } = this
    if (model.tools.size === 0) return
    const search = { operation: 'tools.search' }
    for (let tries = 0, isThere = false; !isThere; tries++) {
      if (tries === directoryTries) throw new Violation('the tools directory does not answer')
      if (tries > 0) await this.wait(3_000)
      const asked = this.ask(search).then(({ ok }) => {
        isThere = ok
      })
      if (!(await this.#until(unlessNoAnswer(asked)))) return
    }
    // What became of payments without an answer is known once they have expired.
    if (model.calls.some(({ mayHavePaid }) => mayHavePaid)) await this.wait(settledMs)
    if (model.isCertain) await this.#until(checkTools(model, this.#patient(this.ask), this.now))
  }

  /** Every webhook is resumed, and receives everything that it is for. */
  async #deliverAll(): Promise<void> {
    if (this.model.hooks.size === 0) return
    for (const { id, by } of this.model.hooks.values())
      await this.#until(unlessNoAnswer(this.ask({ operation: 'webhook.redeliver', target: id }, by)))
    for (let tries = 0; tries < deliveryTries && undelivered(this.model) !== undefined; tries++) await this.wait(2_000)
    const missing = undelivered(this.model)
    if (missing !== undefined && this.model.isCertain) throw new Violation('a webhook missed a post')
  }

  // ---- faults

  async fault(fault: FaultKind): Promise<void> {
    await fault.go(this)
  }

  /** With a damaged file: everything shown is as it was acknowledged, or reported as unreadable. */
  async checkDamaged(): Promise<void> {
    await this.#until(checkReadable(this.board, this.model))
  }

  /** Some posts of the operator, answered. */
  async postSome(): Promise<void> {
    const by = this.model.operator
    for (const { room, text, fields } of this.#somePosts()) {
      this.#send('post', { by, fields, nonce: text, onAccepted: recordPost(by, room, text) })
      // One by one: each has its own head.
      await this.settle()
    }
  }

  /** Many post concurrently, into rooms of all shards, and the power goes off when some of them are answered. */
  async cutAtAnswer(): Promise<void> {
    await this.settle()
    const isOfCalls = this.chance.below(3) === 0 && this.#callConcurrently()
    this.#cut = {
      answers: (isOfCalls ? 1 : 2) + this.chance.below(isOfCalls ? 3 : 6),
      operations: this.chance.below(4),
    }
    if (!isOfCalls) this.postConcurrently()
    await this.settle()
  }

  /** Some people call tools concurrently, on a slow disk. Not awaited. False: there is none to call. */
  #callConcurrently(): boolean {
    const listed = [...this.model.tools.values()].filter(({ isWithdrawn }) => !isWithdrawn)
    const relayed = listed.filter(({ id }) => this.model.relayed.has(id))
    const tools = relayed.length > 0 ? relayed : listed
    if (tools.length === 0) return false
    this.sim.memory.slowMs = this.chance.below(60)
    for (let calls = 0; calls < 3; calls++) {
      const word = `call ${this.step} ${++this.#queries}`
      const by = this.chance.pick(this.model.people)!
      this.#send('call a tool', {
        ...callOf(this.chance.pick(tools)!, by, word),
        nonce: `nonce-${this.#queries}-of-many-calls`,
      })
    }
    return true
  }

  /** Not awaited. On a slow disk, so that shards overtake each other, and files have more than is synced. */
  postConcurrently(): void {
    this.sim.memory.slowMs = this.chance.below(60)
    for (const { room, text, fields } of [...this.#somePosts(), ...this.#somePosts()]) {
      const by = this.chance.pick(this.model.people)!
      this.#send('post', { by, fields, nonce: text, onAccepted: recordPost(by, room, text) })
    }
  }

  /** In every private room, of which the log proves nothing. Not awaited. */
  postInPrivateRooms(): void {
    for (const { name: room, isPrivate, owner: by } of this.model.rooms.values()) {
      if (!isPrivate || by === undefined) continue
      const text = `${secretMark} one of some posts ${this.step} ${++this.#queries}`
      const fields = { operation: 'post', room, text }
      this.#send('private post', {
        by,
        fields,
        nonce: `nonce-${this.#queries}-inside-a-room`,
        onAccepted: recordPost(by, room, text),
      })
    }
  }

  /** The same on a board that is not this one: only its heads count. */
  async postOutsideModel(): Promise<void> {
    for (const { fields } of this.#somePosts()) {
      const posted = async () => {
        const { checkpoint } = (await this.ask(fields, this.model.operator)).data?.receipt ?? {}
        if (checkpoint !== undefined) this.board.recordHead(checkpoint)
      }
      await this.#until(posted())
    }
  }

  /** In rooms of as many shards as there are. */
  #somePosts() {
    const rooms = [...this.model.rooms.values()].filter(({ isPrivate }) => !isPrivate)
    return Array.from({ length: 4 }, (_, n) => {
      const { name: room } = rooms[n % rooms.length]!
      const text = `one of some posts ${this.step} ${++this.#queries}`
      return { room, text, fields: { operation: 'post', room, text } }
    })
  }

  /** Runs until it is settled. False: the board went down, and is up again. */
  async #until(work: Promise<unknown>): Promise<boolean> {
    if ((await this.sim.until(work)) !== 'dark') return true
    await this.recover()
    return false
  }

  /** Creates a board: the power may go off in the middle of it. */
  async firstStart(): Promise<void> {
    this.chance.reseed(`${this.#seed} first`)
    for (let cuts = this.chance.below(3); cuts > 0; cuts--) {
      this.sim.memory.cutAfter(1 + this.chance.below(80))
      if ((await this.sim.until(this.board.start())) === 'dark') this.count('cuts of a new board')
      await this.sim.cutPower()
    }
    await this.sim.until(this.board.start())
    if (this.board.waitsForCopy) await this.#startFollower()
  }

  /** One that has the board already, or begins with nothing. False: the first box went down meanwhile, and is up again. */
  async #startFollower(): Promise<boolean> {
    const life = this.#life
    if (!this.second!.isRunning) await this.second!.start(Number.POSITIVE_INFINITY, () => this.recover())
    return life === this.#life
  }

  /** The board is down, for whatever reason: it starts again from what the disk has. */
  async recover(): Promise<void> {
    this.#forgetPending()
    if (this.sim.memory.isPowerOff || this.chance.below(3) === 0) await this.sim.cutPower()
    else await this.sim.kill()
    await this.restart()
  }

  #forgetPending(): void {
    this.#pending = []
    this.#life++
    for (const sent of this.model.sent.values())
      if (sent.standing === 'open') Object.assign(sent, { standing: 'doubtful', mayBeDone: true })
  }

  /** `cut`: the power goes off this many operations after the log has begun to write. */
  async restart(cut?: number): Promise<void> {
    this.#forgetPending()
    this.heal()
    this.mayFault = false
    this.#cut = undefined
    this.count('starts')
    // The next cut may come while the board recovers from the last one.
    for (let cuts = this.chance.below(4) === 0 ? 1 + this.chance.below(3) : 0; cuts > 0; cuts--) {
      this.sim.memory.cutAfter(1 + this.chance.below(40))
      if ((await this.sim.until(this.board.start())) === 'dark') this.count('cuts during a start')
      await this.sim.cutPower()
    }
    if (cut !== undefined) this.sim.memory.cutAt('write · log journal', cut)
    if ((await this.sim.until(this.board.start())) === 'dark') return this.recover()
    await this.#resendUnanswered()
    const accepted = [...this.model.sent.values()].filter(({ standing }) => standing === 'accepted')
    const asked = [...accepted.slice(-12), ...Array.from({ length: 4 }, () => this.chance.pick(accepted))]
    await this.#until(Promise.all(asked.map((old) => (old === undefined ? undefined : this.#resend(old)))))
  }

  /** Resends everything without an answer: each is done once, whatever was done of it before. */
  async #resendUnanswered(): Promise<void> {
    // A stream that was away is tried again after some seconds.
    const triesMax = this.second === undefined ? 8 : 24
    for (let tries = 0; tries < triesMax; tries++) {
      const doubtful = [...this.model.sent.values()].filter(({ standing }) => standing === 'doubtful')
      if (doubtful.length === 0) return
      if (tries > 0) await this.wait(1_000)
      if (tries === 2) {
        // While the disk is full no write is accepted: the operator frees space.
        this.sim.memory.bytesLeft = Number.POSITIVE_INFINITY
        this.second?.heal()
        // Such a board answers no write until a follower runs.
        if (this.board.waitsForCopy && !(await this.#startFollower())) return
      }
      for (const sent of doubtful) if (sent.standing === 'doubtful') sent.standing = 'open'
      if (
        !(await this.#until(
          Promise.all(doubtful.filter(({ standing }) => standing === 'open').map((sent) => this.#deliver(sent))),
        ))
      )
        return
    }
    throw new Violation('a command is never answered, however often it is sent')
  }
}

/** For a follower, which calls and probes nothing. */
const noOutgoing: Outgoing = {
  request: () => {
    throw new Violation('a follower asks other hosts')
  },
  close: () => {},
}

/** The board was queried, and its thread died. */
class Unanswered extends Error {}

function throwError(error: Error): never {
  throw error
}

function ignoreUnanswered(error: unknown): undefined {
  if (!(error instanceof Unanswered)) throw error
}

async function unlessNoAnswer(work: Promise<unknown>): Promise<void> {
  await work.catch(ignoreUnanswered)
}

function isPublicPost({ fields }: Sent, model: Model): boolean {
  return fields.operation === 'post' && !model.isPrivate(String(fields.room))
}

/** A key may be rotated, and its identity suspended, while one of its commands is in flight. */
const signerCodes = ['key_rotated', 'suspended']

function hookOf({ id, by, fields }: Sent): Hook {
  const { kinds, room } = JSON.parse(String(fields.data)) as {
    readonly kinds: readonly string[]
    readonly room?: string
  }
  return { id, by, room: kinds.includes('room.post') ? room : undefined, delivered: new Set(), mayEnd: false }
}

/** A board that is too busy, or whose disk is full, may say so at any time. */
function hasAllowedCode({ error }: Reply, codes: readonly string[]): boolean {
  return ['overloaded', 'storage_full', ...codes].includes(error?.code ?? '')
}

function describe({ by, fields, resend, sameRequestAs }: Command): string {
  const {
    operation,
    room,
    event_id: target,
  } = fields as Fields & { readonly room?: string; readonly event_id?: string }
  const what =
    resend !== undefined ? ', the same bytes again' : sameRequestAs !== undefined ? ', the same request again' : ''
  return `${by.name}, ${operation}${room === undefined ? '' : ` in ${room}`}${target === undefined ? '' : ` of ${target.slice(0, 8)}`}${what}`
}

/** The same for the same fault, whichever event it hit. */
function withoutNames(message: string): string {
  return message.replaceAll(/[0-9a-f-]{32,}/g, 'ID').replaceAll(/\d+/g, 'N')
}

/** One run from its beginning to its end, or to a violation. */
export async function runWorld(run: Run): Promise<Outcome> {
  const world = await World.begin(run)
  const kinds = kindsOf(run.off, world.second !== undefined)
  const places = kinds.flatMap(({ weight }, at) => Array.from({ length: weight }, () => at))
  let found: Found | undefined
  try {
    await world.firstStart()
    for (world.step = 1; world.step <= run.steps; world.step++) {
      if (run.only?.has(world.step) === false) continue
      world.chance.reseed(`${run.seed} ${world.step}`)
      world.sim.reseed(`${run.seed} machine ${world.step}`)
      const kind = kinds[places[world.chance.below(places.length)]!]!
      if (!(kind.name in allActs)) {
        world.story.push(`${world.step}: ${kind.name}`)
        world.count(kind.name)
      }
      await kind.go(world)
      world.throwFound()
    }
    await world.audit()
    world.throwFound()
  } catch (error) {
    const { message, stack = '', name } = error as Error
    found = { step: world.step, message: withoutNames(name === 'Violation' ? message : `${name}: ${message}`), stack }
  }
  const { seen, hits } = world.sim.memory.points
  await world.sim.kill()
  world.targets.end()
  return {
    ...(found === undefined ? {} : { found }),
    trace: world.trace,
    story: world.story,
    counts: world.counts,
    seen,
    struck: hits,
  }
}
