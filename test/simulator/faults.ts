/** Faults of a board's machine. Each kind has a name, and can be switched off by it. */
import { FOOTER_BYTES, listSegments, SEGMENT_HEADER_BYTES, segmentPath } from '../../storage/segment.ts'
import type { FilesCopy } from '../support/memory-disk.ts'
import { dataDirectory, must, Violation } from './board.ts'
import { nodes } from './payments.ts'
import type { Rows } from './targets.ts'
import type { World } from './world.ts'

/** Faults that a replicated board is spared: its stream would show that another board wrote it. */
export const singleBoxFaults: ReadonlySet<string> = new Set([
  'copy taken',
  'old copy restored',
  'bit flip in a shard',
  'bit flip in the log',
  'newest frame damaged',
  'old log restored',
])

export type FaultKind = { readonly weight: number; readonly go: (world: World) => Promise<void> | void }

export const faults: Readonly<Record<string, FaultKind>> = {
  'power cut': { weight: 3, go: ({ sim, chance }) => sim.memory.cutAfter(1 + chance.below(60)) },
  // Rare points get as many cuts as the others.
  'power cut at a point': {
    weight: 6,
    go: ({ sim, chance }) => {
      const { points } = sim.memory
      const point = chance.pick([...points.seen.keys()].filter((name) => !name.startsWith('read')))
      if (point !== undefined) sim.memory.cutAt(point, chance.below(4))
    },
  },
  'power cut at an answer': { weight: 5, go: (world) => world.cutAtAnswer() },
  'process killed': { weight: 2, go: (world) => killProcess(world) },
  'stopped and started': { weight: 1, go: (world) => restartBoard(world) },
  'thread killed': {
    weight: 3,
    go: (world) => {
      const name = world.sim.killThread()
      world.count(`thread ${name} killed`)
    },
  },
  'sync fails': {
    weight: 2,
    go: (world) => {
      world.mayFault = true
      world.sim.memory.syncFailsAfter = world.chance.below(30)
    },
  },
  'write fails': {
    weight: 2,
    go: (world) => {
      world.mayFault = true
      world.sim.memory.writeFailsAfter = world.chance.below(30)
    },
  },
  'read fails': {
    weight: 4,
    go: (world) => {
      world.mayFault = true
      const { memory } = world.sim
      // Half of them at one kind of file, however seldom it is read.
      const kinds = [...memory.points.seen.keys()].filter((name) => name.startsWith('read'))
      if (world.chance.below(2) === 0) memory.readFailsAfter = world.chance.below(30)
      else memory.readFailsAt = world.chance.pick(kinds)
    },
  },
  'disk full': {
    weight: 2,
    go: ({ sim, chance }) => changeFaultSetting(sim.memory, 'bytesLeft', chance.below(200_000)),
  },
  'disk has room': {
    weight: 3,
    go: ({ sim }) => changeFaultSetting(sim.memory, 'bytesLeft', Number.POSITIVE_INFINITY),
  },
  'slow disk': { weight: 2, go: ({ sim, chance }) => changeFaultSetting(sim.memory, 'slowMs', chance.below(400)) },
  'slow links': { weight: 2, go: ({ sim, chance }) => changeFaultSetting(sim, 'delayMs', chance.below(200)) },
  'quick machine': {
    weight: 3,
    go: ({ sim }) => {
      sim.memory.slowMs = 0
      sim.delayMs = 5
    },
  },
  'a target changes': {
    weight: 5,
    go: ({ targets, model, chance }) => {
      const hook = chance.pick([...model.hooks.keys()])
      const { url } = JSON.parse(String(model.sent.get(hook ?? '')?.fields.data ?? '{}')) as { readonly url?: string }
      if (url !== undefined) targets.changeBehavior(url)
    },
  },
  'a host of tools changes': {
    weight: 8,
    go: changeHost,
  },
  'copy taken': { weight: 2, go: (world) => takeCopy(world) },
  'old copy restored': { weight: 1, go: (world) => restoreOldCopy(world) },
  'bit flip in a shard': { weight: 1, go: (world) => flipBit(world, 'shard') },
  'bit flip in the log': { weight: 1, go: (world) => flipBit(world, 'log') },
  'newest frame damaged': { weight: 1, go: (world) => damageNewestFrame(world) },
  'old log restored': { weight: 1, go: (world) => restoreOldLog(world) },
}

function changeFaultSetting<Name extends string>(of: Record<Name, number>, name: Name, value: number): void {
  of[name] = value
}

/** It answers differently, or changes its owner, its price, or whether it wants to be listed. */
function changeHost({ hosts, model, chance }: World): void {
  if (chance.below(3) === 0) return hosts.changeBehavior(chance.pick(Object.keys(nodes))!)
  const tool = chance.pick([...model.tools.values()])
  if (tool === undefined) return
  const { host, owner } = tool
  const known = model.hostOf(host)
  const what = chance.below(10)
  if (what < 4) hosts.changeBehavior(host)
  else if (what >= 8) hosts.changeTerms(host)
  else if (what < 7) {
    const person = chance.below(2) === 0 ? owner : chance.pick(model.people)
    if (person === undefined) return
    known.named.add(person)
    hosts.setOwner(host, person.id)
  } else {
    const isOut = chance.below(2) === 0
    known.hasOptedOut ||= isOut
    hosts.optOut(host, isOut)
  }
}

/** With much in progress: the next start finds data that was written and not synced, and the power goes off when the log has covered it. */
async function killProcess(world: World): Promise<void> {
  world.postConcurrently()
  await world.wait(world.chance.below(30))
  await world.sim.kill()
  await world.restart(world.chance.below(6))
}

/** As a service manager stops it: every file is closed in order. */
async function restartBoard(world: World): Promise<void> {
  await world.settle()
  if ((await world.sim.until(world.board.stop())) === 'dark') return world.recover()
  await world.sim.kill()
  await world.restart()
}

/** Everything is on disk, and everything shown of it is in the mark. False: the board went down before. */
export async function atRest(world: World): Promise<boolean> {
  await world.settle()
  world.heal()
  await world.wait(2_500)
  return world.model.isCertain
}

async function takeCopy(world: World): Promise<void> {
  if (!(await atRest(world))) return
  world.copy = { size: world.board.size, files: world.sim.memory.copy(dataDirectory) }
}

/** The error of a start; undefined: it runs. */
async function startError(world: World): Promise<Error | undefined> {
  try {
    await world.sim.until(world.board.start())
    return undefined
  } catch (error) {
    if (error instanceof Violation) throw error
    return error as Error
  }
}

/** Yesterday's directory in place of today's: the mark beside it knows more, so no start may continue to sign. */
async function restoreOldCopy(world: World): Promise<void> {
  const old = world.copy
  if (old === undefined || !(await atRest(world))) return
  if (old.size === world.board.size) return
  const today = await saveAndStop(world)
  world.sim.memory.replaceFiles(dataDirectory, old.files)
  const error = await startError(world)
  if (error?.name !== 'RolledBack')
    throw new Violation(`an old copy was restored and the start says ${error?.name ?? 'nothing'}`)
  world.count('old copies noticed')
  await restoreSaved(world, today)
}

type SavedState = { readonly files: FilesCopy; readonly deliveries: Rows; readonly heads: ReadonlyMap<number, string> }

/** The process ends, and everything that it left is saved. */
async function saveAndStop({ sim, board, targets }: World): Promise<SavedState> {
  await sim.kill()
  return { files: sim.memory.copy(dataDirectory), deliveries: targets.rows, heads: new Map(board.heads) }
}

/** Discards what a board with other files has done since. */
async function restoreSaved(world: World, { files, deliveries, heads }: SavedState): Promise<void> {
  await world.sim.kill()
  world.sim.memory.replaceFiles(dataDirectory, files)
  world.targets.restore(deliveries)
  for (const size of [...world.board.heads.keys()]) if (!heads.has(size)) world.board.heads.delete(size)
  await world.restart()
}

/** One bit of a sealed segment, before a start or while the board runs: it affects only what it is in. */
async function flipBit(world: World, where: 'shard' | 'log'): Promise<void> {
  const { chance, sim } = world
  if (!(await atRest(world))) return
  const directory =
    where === 'log' ? `${dataDirectory}/log` : `${dataDirectory}/shard-0${chance.below(world.board.shards)}`
  const sealed = listSegments(sim.memory, directory, 'log').slice(0, -1)
  const first = chance.pick(sealed)
  if (first === undefined) return
  const today = await saveAndStop(world)
  const path = segmentPath(directory, first)
  const at =
    SEGMENT_HEADER_BYTES + chance.below(sim.memory.readWhole(path).length - SEGMENT_HEADER_BYTES - FOOTER_BYTES)
  const bit = chance.below(8)
  const mayStart = chance.below(2) === 0
  if (mayStart) must((await startError(world)) === undefined, 'a board that was ended does not start again')
  sim.memory.flipBit(path, at, bit)
  const error = mayStart ? undefined : await startError(world)
  if (error === undefined) {
    world.count(`boards that run with a damaged ${where}`)
    await world.checkDamaged()
  } else {
    world.count(`boards that refuse a damaged ${where}`)
    if (!error.message.includes(path)) throw new Violation(`a damaged file is not named: ${error.name}`)
  }
  await restoreSaved(world, today)
}

/** The newest acknowledged frame of a shard: the log proves it, so it is not cut but reported. */
async function damageNewestFrame(world: World): Promise<void> {
  const { chance, sim } = world
  if (!(await atRest(world))) return
  const today = await saveAndStop(world)
  const directory = `${dataDirectory}/shard-0${chance.below(world.board.shards)}`
  const path = segmentPath(directory, listSegments(sim.memory, directory, 'log').at(-1)!)
  const bytes = sim.memory.readWhole(path)
  let end = bytes.length
  while (end > 64 && bytes[end - 1] === 0) end--
  if (end > 64) {
    sim.memory.flipBit(path, end - 1, chance.below(8))
    const before = sim.memory.readWhole(path)
    const error = await startError(world)
    if (error === undefined) await world.checkDamaged()
    else if (!error.message.includes(path)) throw new Violation(`a damaged newest frame is not named: ${error.name}`)
    else if (!sim.memory.readWhole(path).equals(before)) throw new Violation('a refused start has cut a journal')
  }
  await restoreSaved(world, today)
}

/** Only the journal of the log is that of a moment ago; no mark was written since. */
async function restoreOldLog(world: World): Promise<void> {
  const { sim, board } = world
  if (!(await atRest(world))) return
  const directory = `${dataDirectory}/log`
  const old = sim.memory.copy(directory)
  const size = board.size
  await world.postSome()
  if (!world.model.isCertain || board.size === size) return
  const today = await saveAndStop(world)
  sim.memory.replaceFiles(directory, old)
  if ((await startError(world)) === undefined) {
    // It may continue where the same leaves follow, and sign the same heads.
    await world.checkDamaged()
    await world.postOutsideModel()
  }
  await restoreSaved(world, today)
}
