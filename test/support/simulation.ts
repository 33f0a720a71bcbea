/**
 * A machine in one process: threads are plain functions here, links carry copies, and time is virtual. Time advances when nothing is left
 * to do at this moment, so that hours cost nothing, and the same seed gives the same run.
 *
 * A thread that dies, or a power cut, takes its timers, its ports and whatever it waited for. The disk is the one that is given: one in
 * memory is cut with the power, on the machine's disk only the threads die.
 */
import type { Port } from '../../actors/kernel/link.ts'
import type { FromThread, Thread, ThreadStart } from '../../actors/kernel/supervisor.ts'
import type { Cancel } from '../../actors/kernel/timers.ts'
import type { Clock } from '../../src/clock.ts'
import type { Platform } from '../../src/platform.ts'
import { type ThreadName, threadFile } from '../../src/program.ts'
import type { Pool } from '../../src/runtime/thread-pool.ts'
import { runThread, type ThreadStarter } from '../../src/workers/thread.ts'
import type { Disk, DiskFile, SyncFailed } from '../../storage/disk.ts'
import { MemoryDisk } from './memory-disk.ts'
import { SeededRandom } from './seeded-random.ts'

type Event = { readonly due: number; readonly turn: number; readonly run: () => void; isOff: boolean }

/** Real milliseconds to wait for things outside this machine (a module that loads, a sync of the real disk). */
const patienceMs = 5_000
/** This many events happen in one turn of the real event loop, because a turn alone costs 2 us. */
const turnsOfLoop = 16

/** Virtual time, and its scheduled events. */
class EventQueue {
  now = 0
  #turn = 0
  /** A heap: the next event is in front. */
  readonly #events: Event[] = []

  add(run: () => void, afterMs: number): Event {
    const event: Event = { due: this.now + Math.max(0, afterMs), turn: ++this.#turn, run, isOff: false }
    let at = this.#events.push(event) - 1
    for (let up = (at - 1) >> 1; at > 0 && before(event, this.#events[up]!); up = (at - 1) >> 1) {
      this.#events[at] = this.#events[up]!
      at = up
    }
    this.#events[at] = event
    return event
  }

  /** Runs the next event. False: there is none. */
  step(): boolean {
    for (let event = this.#next(); event !== undefined; event = this.#next()) {
      if (event.isOff) continue
      this.now = Math.max(this.now, event.due)
      event.run()
      return true
    }
    return false
  }

  #next(): Event | undefined {
    const [first] = this.#events
    const last = this.#events.pop()
    if (first === undefined || last === undefined || this.#events.length === 0) return first
    let at = 0
    for (;;) {
      let down = 2 * at + 1
      const [left, right] = [this.#events[down], this.#events[down + 1]]
      if (left === undefined) break
      if (right !== undefined && before(right, left)) down++
      if (!before(this.#events[down]!, last)) break
      this.#events[at] = this.#events[down]!
      at = down
    }
    this.#events[at] = last
    return first
  }
}

function before(one: Event, other: Event): boolean {
  return one.due < other.due || (one.due === other.due && one.turn < other.turn)
}

/** Everything that runs in one thread: it ends as a whole. */
class ThreadContext {
  isOver = false
  readonly #agenda: EventQueue
  readonly #startedAt: number
  readonly #onFault: (error: unknown) => void
  readonly #events = new Set<Event>()
  readonly #ports = new Set<SimulatedPort>()
  #newestRead = 0

  constructor(agenda: EventQueue, startedAt: number, onFault: (error: unknown) => void) {
    this.#agenda = agenda
    this.#startedAt = startedAt
    this.#onFault = onFault
  }

  /** Runs something in this thread. */
  run(work: () => void): void {
    if (this.isOver) return
    try {
      work()
    } catch (error) {
      this.#onFault(error)
    }
  }

  after(ms: number, work: () => void): Cancel {
    if (this.isOver) return () => {}
    const event = this.#agenda.add(() => {
      this.#events.delete(event)
      this.run(work)
    }, ms)
    this.#events.add(event)
    return () => {
      event.isOff = true
      this.#events.delete(event)
    }
  }

  own(port: SimulatedPort): void {
    port.context.#ports.delete(port)
    this.#ports.add(port)
    port.context = this
  }

  end(): void {
    this.isOver = true
    for (const event of this.#events) event.isOff = true
    this.#events.clear()
    for (const port of this.#ports) port.close()
  }

  readonly clock: Clock = {
    wallSeconds: () => Math.floor(this.clock.wallMilliseconds() / 1_000),
    wallMilliseconds: () => this.#startedAt + Math.floor(this.#agenda.now),
    readingSeconds: () => {
      this.#newestRead = Math.max(this.#newestRead, this.clock.wallSeconds())
      return this.#newestRead
    },
    monotonicMs: () => this.#agenda.now,
    later: (callback, ms) => this.after(ms, callback),
    every: (callback, ms) => {
      let cancel: Cancel = () => {}
      const again = (): void => {
        cancel = this.after(ms, again)
        callback()
      }
      cancel = this.after(ms, again)
      return () => cancel()
    },
    soon: (callback) => this.after(0, callback),
  }
}

/** One end of a link: messages arrive in order, each with its own delay. */
class SimulatedPort implements Port {
  context: ThreadContext
  other: SimulatedPort | undefined
  readonly #delay: () => number
  readonly #early: unknown[] = []
  #take: ((bytes: Uint8Array) => void) | undefined
  #closed: (() => void) | undefined
  #isClosed = false
  #arrivesAt = 0

  constructor(place: ThreadContext, delay: () => number) {
    this.context = place
    this.#delay = delay
  }

  on(event: 'message' | 'close', take: (bytes: Uint8Array) => void): void {
    if (event === 'close') this.#closed = () => take(new Uint8Array())
    else {
      this.#take = take
      for (const message of this.#early.splice(0)) this.#arrive(message)
    }
  }

  postMessage(bytes: Uint8Array, transfer: readonly ArrayBuffer[]): void {
    const { buffer, byteOffset, byteLength } = bytes
    // As `structuredClone` does it, at a fifth of its cost.
    const message =
      buffer instanceof ArrayBuffer && transfer.includes(buffer)
        ? new Uint8Array(buffer.transfer(), byteOffset, byteLength)
        : bytes.slice()
    if (this.other !== undefined) this.other.#receive(message)
  }

  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    if (this.other !== undefined) this.other.#end()
  }

  #receive(message: Uint8Array): void {
    if (this.#isClosed) return
    const now = this.context.clock.monotonicMs()
    this.#arrivesAt = Math.max(this.#arrivesAt, now + this.#delay())
    this.context.after(this.#arrivesAt - now, () => this.#arrive(message))
  }

  /** The other end was closed: what it sent before still arrives. */
  #end(): void {
    this.context.after(Math.max(0, this.#arrivesAt - this.context.clock.monotonicMs()), () => {
      this.#isClosed = true
      this.#closed?.()
    })
  }

  #arrive(message: unknown): void {
    if (this.#isClosed) return
    if (this.#take === undefined) this.#early.push(message)
    else {
      const take = this.#take
      // It may have been handed to another thread on the way.
      this.context.run(() => take(message as Uint8Array))
    }
  }
}

/** The disk as one thread sees it: pending callbacks end with the thread. */
function diskOf(disk: Disk, place: ThreadContext, waits: { count: number }): Disk {
  const withWait = async <Result>(work: Promise<Result>): Promise<Result> => {
    waits.count++
    const result = await work.finally(() => {
      waits.count--
    })
    return place.isOver ? new Promise<never>(() => {}) : result
  }
  return {
    descriptorsMax: disk.descriptorsMax,
    readsAreSlow: () => disk.readsAreSlow(),
    openFile: (path, mode) => new ContextFile(disk.openFile(path, mode), place, waits),
    openForReading: (path) => disk.openForReading(path),
    readWhole: (path) => disk.readWhole(path),
    fileExists: (path) => disk.fileExists(path),
    stat: (path) => disk.stat(path),
    listFiles: (directory) => disk.listFiles(directory),
    listDirectories: (directory) => disk.listDirectories(directory),
    makeDirectory: (path) => disk.makeDirectory(path),
    syncDirectory: (path) => disk.syncDirectory(path),
    writeAtomic: (path, bytes, mode) => disk.writeAtomic(path, bytes, mode),
    writeAtomicLater: (path, bytes) => withWait(disk.writeAtomicLater(path, bytes)),
    replaceLater: (path, text) => withWait(disk.replaceLater(path, text)),
    renameDurable: (from, to) => disk.renameDurable(from, to),
    removeUnsynced: (path) => disk.removeUnsynced(path),
    removeFile: (path) => disk.removeFile(path),
    removeDirectory: (path) => disk.removeDirectory(path),
    freeBytes: (directory) => disk.freeBytes(directory),
  }
}

class ContextFile implements DiskFile {
  readonly path: string
  readonly #file: DiskFile
  readonly #context: ThreadContext
  readonly #waits: { count: number }

  constructor(file: DiskFile, place: ThreadContext, waits: { count: number }) {
    this.path = file.path
    this.#file = file
    this.#context = place
    this.#waits = waits
  }

  size(): number {
    return this.#file.size()
  }

  readAt(into: Uint8Array, position: number): number {
    return this.#file.readAt(into, position)
  }

  prefetch(position: number, bytes: number): void {
    this.#file.prefetch(position, bytes)
  }

  writeAt(bytes: Uint8Array, position: number): void {
    this.#file.writeAt(bytes, position)
  }

  sync(): void {
    this.#file.sync()
  }

  syncLater(done: (failed?: SyncFailed) => void): void {
    this.#waits.count++
    this.#file.syncLater((failed) => {
      this.#waits.count--
      this.#context.run(() => done(failed))
    })
  }

  truncate(size: number): void {
    this.#file.truncate(size)
  }

  close(): void {
    this.#file.close()
  }
}

export type Starter = ThreadStarter<unknown, unknown>
type Tasks = Readonly<Record<string, (task: unknown) => unknown>>
type Loaded = { readonly starters: ReadonlyMap<string, Starter>; readonly tasks: ReadonlyMap<string, Tasks> }

class SimulatedThread implements Thread {
  readonly name: string
  readonly #supervisor: ThreadContext
  readonly #context: ThreadContext
  readonly #early: unknown[] = []
  #take: ((message: unknown) => void) | undefined
  #onMessage: (message: FromThread) => void = () => {}
  #onExit: (code: number) => void = () => {}

  constructor(name: string, agenda: EventQueue, startedAt: number, supervisor: ThreadContext) {
    this.name = name
    this.#supervisor = supervisor
    this.#context = new ThreadContext(agenda, startedAt, (error) => this.die(error))
  }

  get isOver(): boolean {
    return this.#context.isOver
  }

  begin(
    starter: Starter,
    { data, ports }: ThreadStart,
    machine: (place: ThreadContext) => Pick<Platform, 'clock' | 'random' | 'disk'>,
  ): void {
    const place = this.#context
    for (const port of ports) if (port instanceof SimulatedPort) place.own(port)
    const given = copyMessage(data)
    place.after(0, () => {
      const run = async (): Promise<void> => {
        const line = {
          send: (message: FromThread) => this.#tell(message),
          onMessage: (take: (message: unknown) => void) => {
            this.#take = take
            for (const message of this.#early.splice(0)) take(message)
          },
          close: () => this.#exit(0),
        }
        await runThread(starter, given, machine(place), line, (error) => this.die(error))
      }
      run().catch((error: unknown) => this.die(error))
    })
  }

  onMessage(take: (message: FromThread) => void): void {
    this.#onMessage = take
  }

  /** A thread of this machine reports what killed it itself. */
  onError(): void {}

  onExit(take: (code: number) => void): void {
    const before = this.#onExit
    this.#onExit = (code) => {
      before(code)
      take(code)
    }
  }

  send(message: unknown, ports: readonly Port[]): void {
    for (const port of ports) if (port instanceof SimulatedPort) this.#context.own(port)
    const given = copyMessage(message)
    this.#context.after(0, () => (this.#take === undefined ? this.#early.push(given) : this.#take(given)))
  }

  async terminate(): Promise<void> {
    this.#exit(1)
  }

  async usage() {
    return { heapBytes: 0, activeSeconds: 0 }
  }

  #tell(message: FromThread): void {
    if (this.#context.isOver) return
    const given = copyMessage(message)
    this.#supervisor.after(0, () => this.#onMessage(given))
  }

  /** As a thread does whose code throws. */
  die(error: unknown): void {
    const { name, message, stack } = error instanceof Error ? error : new Error(String(error))
    this.#tell({ kind: 'dying', error: { name, message, stack: stack ?? '' } })
    this.#exit(70)
  }

  #exit(code: number): void {
    if (this.#context.isOver) return
    this.#context.end()
    this.#supervisor.after(0, () => this.#onExit(code))
  }
}

/** As `postMessage` copies it: ports are transferred, shared memory stays shared, a Buffer arrives as plain bytes. */
function copyMessage<Value>(value: Value): Value {
  if (typeof value !== 'object' || value === null || value instanceof SimulatedPort) return value
  if (ArrayBuffer.isView(value)) return value.buffer instanceof SharedArrayBuffer ? value : structuredClone(value)
  if (Array.isArray(value)) return value.map(copyMessage) as Value
  if (Object.getPrototypeOf(value) !== Object.prototype) return structuredClone(value)
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, copyMessage(each)])) as Value
}

export type SimulationOptions = {
  readonly seed: number
  /** Without one it is in memory, and is cut with the power. */
  readonly disk?: Disk
  /** The maximum delay of a message in milliseconds. */
  readonly delayMs?: number
  /** Replaces the tasks of pools, by their names. */
  readonly tasks?: Tasks
  /** Replaces the threads of a board, by their names. */
  readonly threads?: ReadonlyMap<ThreadName, Starter>
}

/** Shared by all machines: time, randomness, what their threads run, and the delay of messages between those. */
type Shared = Loaded & {
  readonly agenda: EventQueue
  readonly random: SeededRandom
  /** The maximum. */
  delayMs: number
}

const startedAt = 1_790_000_000_000

/** A machine that boards run on, one at a time. */
export class Machine {
  readonly memory: MemoryDisk
  readonly #shared: Shared
  readonly #disk: Disk
  readonly #waits = { count: 0 }
  /** The board has ended its process. */
  #hasExited = false
  readonly #cuts: (() => void)[] = []
  /** The main thread, until the process ends. */
  #main: ThreadContext
  #threads: SimulatedThread[] = []
  #fault: { readonly error: unknown } | undefined
  #life = 0
  #ended = Promise.withResolvers<void>()

  constructor(shared: Shared, disk?: Disk) {
    this.#shared = shared
    this.memory = new MemoryDisk({
      soon: (callback, slowMs) => void shared.agenda.add(callback, this.#delay() + slowMs),
      randomBelow: (below) => shared.random.below(below),
    })
    this.#disk = disk ?? this.memory
    this.#main = this.#newMain()
  }

  #newMain(): ThreadContext {
    return new ThreadContext(this.#shared.agenda, startedAt, (error) => {
      this.#fault ??= { error }
    })
  }

  readonly #delay = (): number => (this.#shared.random.below(1_000) / 1_000) * this.#shared.delayMs

  /** The power is off, or the process has ended. */
  get isDown(): boolean {
    return this.memory.isPowerOff || this.#hasExited
  }

  /** What its main thread threw. */
  get fault(): { readonly error: unknown } | undefined {
    return this.isDown ? undefined : this.#fault
  }

  /** Something real is pending: a sync of a disk that is not in memory. */
  get isWaiting(): boolean {
    return this.#waits.count > 0 && this.#disk !== this.memory
  }

  /** Grows with each process that has ended here. */
  get life(): number {
    return this.#life
  }

  /** Resolves when the current process has ended. */
  get ended(): Promise<void> {
    return this.#ended.promise
  }

  /** Of the current main thread. */
  get platform(): Platform {
    const main = this.#main
    const { agenda, starters, tasks } = this.#shared
    return {
      ...this.#platformOf(main),
      startThread: (file, start) => {
        const starter = starters.get(file.href)
        if (starter === undefined) throw new Error(`this simulation has no thread ${file.href}`)
        const thread = new SimulatedThread(start.name, agenda, startedAt, main)
        this.#threads.push(thread)
        thread.begin(starter, start, (place) => this.#platformOf(place))
        return thread
      },
      onBytesReleased: () => {},
      channel: () => {
        const port1 = new SimulatedPort(main, this.#delay)
        const port2 = new SimulatedPort(main, this.#delay)
        for (const [one, other] of [
          [port1, port2],
          [port2, port1],
        ] as const) {
          one.other = other
          main.own(one)
        }
        return { port1, port2 }
      },
      // The tasks of a pool run immediately, in the calling thread.
      startPool: async ({ href }): Promise<Pool> => {
        const found = tasks.get(href)
        if (found === undefined) throw new Error(`this simulation has no pool ${href}`)
        return {
          threads: 1,
          run: async <Answer>(name: string, task: unknown) => found[name]!(task) as Answer,
          onError: () => {},
          end: async () => {},
        }
      },
      exit: () => {
        this.#hasExited = true
      },
    }
  }

  /** Does something in the main thread: if it throws, the board has failed. */
  runInMain(work: () => void): void {
    this.#main.run(work)
  }

  /** Ends every thread, the main one too. Nothing runs until `kill` or `cutPower` lets it start again. */
  endAllThreads(): void {
    this.#main.end()
    for (const thread of this.#threads) void thread.terminate()
    this.#threads = []
    this.#ended.resolve()
  }

  /** Ends every thread, the main one too; a disk in memory loses what it had not synced. */
  async cutPower(): Promise<void> {
    await this.kill()
    this.memory.restore()
    for (const cut of this.#cuts) cut()
  }

  /** For components with their own files beside that disk. */
  onCut(cut: () => void): void {
    this.#cuts.push(cut)
  }

  /** Ends every thread, the main one too. The disk keeps what was written. */
  async kill(): Promise<void> {
    this.endAllThreads()
    // Pending operations on a real disk finish first.
    while (this.isWaiting) await new Promise((go) => setTimeout(go, 1))
    this.memory.endLife()
    this.#hasExited = false
    this.#fault = undefined
    this.#life++
    this.#ended = Promise.withResolvers()
    this.#main = this.#newMain()
  }

  /** After its process was killed, or after a power cut. */
  restart(): Promise<void> {
    return this.memory.isPowerOff ? this.cutPower() : this.kill()
  }

  /** Kills one thread and returns its name. Undefined if none is running. */
  killThread(): string | undefined {
    const living = this.#threads.filter(({ isOver }) => !isOver)
    if (living.length === 0) return undefined
    const thread = living[this.#shared.random.below(living.length)]!
    thread.die(new Error('it was killed by the simulation'))
    return thread.name
  }

  #platformOf(place: ThreadContext): Pick<Platform, 'clock' | 'random' | 'disk'> {
    const { random } = this.#shared
    return {
      clock: place.clock,
      random: (bytes) => random.bytes(bytes),
      disk: diskOf(this.#disk, place, this.#waits),
    }
  }
}

/** The machine that a board runs on, and the time shared with other machines beside it. */
export class Simulation extends Machine {
  readonly #shared: Shared
  /** This one, and those beside it. */
  readonly #machines: Machine[] = [this]

  private constructor(shared: Shared, disk: Disk | undefined) {
    super(shared, disk)
    this.#shared = shared
  }

  /** With these threads. Their modules are loaded first: how long that takes is no part of a run. */
  static async begin(options: SimulationOptions, threads: readonly ThreadName[]): Promise<Simulation> {
    const loaded = threads.map(async (name): Promise<[file: string, starter: Starter]> => {
      const { href } = threadFile(name)
      const { thread } = (await import(href)) as { readonly thread: Starter }
      return [href, thread]
    })
    const { href } = threadFile('verify')
    const tasks = new Map([[href, { ...((await import(href)) as Tasks), ...options.tasks }]])
    const own = [...(options.threads ?? [])].map(([name, starter]) => [threadFile(name).href, starter] as const)
    const starters = new Map([...(await Promise.all(loaded)), ...own])
    const { seed, disk, delayMs = 5 } = options
    return new Simulation(
      { agenda: new EventQueue(), random: new SeededRandom(String(seed)), starters, tasks, delayMs },
      disk,
    )
  }

  /** The maximum delay of a message between threads in milliseconds. */
  get delayMs(): number {
    return this.#shared.delayMs
  }

  set delayMs(ms: number) {
    this.#shared.delayMs = ms
  }

  /** Another machine beside this one, with the same time. */
  addMachine(): Machine {
    const machine = new Machine(this.#shared)
    this.#machines.push(machine)
    return machine
  }

  /** Something that happens on none of these machines. */
  schedule(run: () => void, afterMs: number): void {
    this.#shared.agenda.add(run, afterMs)
  }

  /** A number from 0 up to, and not including, `below`. */
  randomBelow(below: number): number {
    return this.#shared.random.below(below)
  }

  /** Everything from here on follows from this text, whatever came before. */
  reseed(text: string): void {
    this.#shared.random.reseed(text)
  }

  /** Lets time pass until this is settled, or this machine is down or has been since. A machine beside it that is down stands still. */
  until<Result>(work: Promise<Result>, isDown = this.#isDownOrRestarted()): Promise<Result | 'dark'> {
    const { promise, resolve, reject } = Promise.withResolvers<Result | 'dark'>()
    let settled: (() => void) | undefined
    work.then(
      (result) => {
        settled = () => resolve(result)
      },
      (error: unknown) => {
        settled = () => reject(error)
      },
    )
    let idleSince: number | undefined
    /** False: there is no next one. */
    const turn = (): boolean => {
      if (isDown()) settled = () => resolve('dark')
      else this.#checkMachines()
      settled?.()
      if (settled !== undefined) return false
      // A real disk is pending: time stands still meanwhile.
      if (!this.isWaiting && this.#shared.agenda.step()) idleSince = undefined
      else {
        idleSince ??= performance.now()
        if (performance.now() - idleSince > patienceMs) throw new Error('nothing is left that could happen')
      }
      return true
    }
    let isOver = false
    const turnOn = (): void => {
      if (isOver) return
      try {
        isOver = !turn()
      } catch (error) {
        isOver = true
        reject(error)
      }
    }
    // Promise continuations run after each event, before anything else happens.
    const turnsOn = (): void => {
      if (isOver) return
      // Something outside needs the real event loop.
      for (let turns = idleSince === undefined ? turnsOfLoop : 1; turns > 0; turns--) setImmediate(turnOn)
      setImmediate(turnsOn)
    }
    turnsOn()
    return promise
  }

  #isDownOrRestarted(): () => boolean {
    const { life } = this
    return () => this.isDown || this.life !== life
  }

  /** Throws the error of one that failed. */
  #checkMachines(): void {
    for (const machine of this.#machines) {
      if (machine !== this && machine.isDown) machine.endAllThreads()
      if (machine.fault !== undefined) throw machine.fault.error
    }
  }

  /** Time advances by this much in one step, as when the machine was asleep. */
  sleep(ms: number): void {
    this.#shared.agenda.now += ms
  }
}
