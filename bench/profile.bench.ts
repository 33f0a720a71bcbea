/**
 * Where does a loaded board spend its time? One picture of all its threads, to look at and to send to us.
 *
 * A warm board takes signed posts while V8's profiler samples each of its threads. Frames are weighted by wall time: a thread that waits in
 * a sync counts as busy, one that waits for events does not. Helper threads of V8 and the libuv pool run no JavaScript: they are shown only
 * with their processor time.
 */
import { once } from 'node:events'
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { type BoardRun, withBoard } from './board.ts'
import type { Measured } from './client-process.ts'
import { type CpuProfile, type Frame, flameSvg, frameOf, framesOf, withoutDirectory } from './flame.ts'
import { machineFacts, projectDirectory, withDirectory } from './machine.ts'
import type { Bench, Row } from './report.ts'

const inFlight = 64
const results = join(projectDirectory, 'bench', 'results', 'profile')

export const profile: Bench = {
  name: 'profile',
  question: 'Where does a loaded board spend its time?',
  run: ({ isQuick, warmup = isQuick ? 10_000 : 60_000 }) =>
    withDirectory((directory) => {
      const socket = join(directory, 'profile')
      const module = new URL('./profiling.ts', import.meta.url).href
      const env = { BENCH_PROFILE: socket, NODE_OPTIONS: `--import ${module}` }
      return withBoard(async (board) => {
        for (let left = warmup; left > 0; left -= 5_000) await board.post(inFlight, Math.min(left, 5_000))
        await say(socket, 'start')
        const measured = await sample(board, isQuick ? 1 : 4)
        await say(socket, 'stop')
        const posts = measured.reduce((sum, { requests }) => sum + requests, 0)
        const threads = takeProfiles(directory)
        const rows = threads.map(
          ({ name, us }): Row => ({
            thread: name,
            'busy ms': us / 1000,
            'us a post': us / posts,
          }),
        )
        threads.push(...withoutStacks(measured))
        write(
          threads.map((thread) => ({ ...thread, name: `${thread.name}: ${Math.round(thread.us / posts)} us a post` })),
          measured,
        )
        const note = `pictures and profiles: ${join('bench', 'results', 'profile')}; open board.svg in a browser`
        return [{ title: `time of the threads that run JavaScript, ${inFlight} posts in flight`, rows, notes: [note] }]
      }, env)
    }),
}

async function sample(board: BoardRun, times: number): Promise<Measured[]> {
  const found: Measured[] = []
  for (let n = 0; n < times; n++) found.push(await board.post(inFlight, 10_000))
  return found
}

/** Tells the threads to start or stop, and waits until they have. */
async function say(socket: string, word: 'start' | 'stop'): Promise<void> {
  const peer = connect(socket).setEncoding('utf8')
  let answer = ''
  peer.on('data', (text) => {
    answer += text
  })
  peer.write(word)
  await once(peer, 'end')
  if (answer !== 'started' && answer !== 'done') throw new Error(`the board's threads: ${answer}`)
}

/** Reads what the threads wrote, stores it without paths of this machine, and returns the frames of each thread. */
function takeProfiles(directory: string): Frame[] {
  rmSync(results, { recursive: true, force: true })
  mkdirSync(results, { recursive: true })
  const files = readdirSync(directory).filter((file) => file.endsWith('.cpuprofile'))
  return files.sort().map((file) => {
    const found = JSON.parse(readFileSync(join(directory, file), 'utf8')) as CpuProfile
    const kept = withoutDirectory(found, projectDirectory)
    writeFileSync(join(results, file), JSON.stringify(kept))
    return framesOf(file.replace(/^\d+-|\.cpuprofile$/g, ''), kept)
  })
}

/** The other threads of the process, by their processor time. */
function withoutStacks(measured: readonly Measured[]): Frame[] {
  return ['V8 helpers', 'libuv pool'].map((name) => {
    const frame = frameOf(name)
    for (const { threads } of measured)
      frame.us += threads.reduce((sum, thread) => sum + (thread.name === name ? thread.cpuUs : 0), 0)
    return frame
  })
}

function write(threads: readonly Frame[], measured: readonly Measured[]): void {
  const { processor, cores, node, commit } = machineFacts()
  const posts = measured.reduce((sum, { requests }) => sum + requests, 0)
  const seconds = measured.reduce((sum, each) => sum + each.seconds, 0)
  const title = `Broadside ${commit}: ${posts.toLocaleString('en')} posts at ${Math.round(posts / seconds).toLocaleString('en')}/s, ${inFlight} in flight`
  const note = `${processor}, ${cores} cores, Node ${node}; by the clock without waits for events; orange is the board, blue Node, purple libraries, green garbage collection, gray V8 and native code`
  writeFileSync(join(results, 'board.svg'), flameSvg({ title, note, threads }))
}
