/** Faults of a replicated board: of its servers and its follower, and take-overs by that follower. */
import { handOver } from '../../src/replication/hand-over.ts'
import { standDown } from '../../src/replication/stand-down.ts'
import { Violation } from './board.ts'
import { atRest, type FaultKind } from './faults.ts'
import { machineDirectory, type SecondBox, silent } from './second-box.ts'
import type { World } from './world.ts'

const kinds: Readonly<Record<string, { readonly weight: number; readonly go: TakeOverStep }>> = {
  'servers away': {
    weight: 2,
    go: (_world, { servers }) => {
      servers.areDown = true
    },
  },
  'messages lost': {
    weight: 3,
    go: ({ chance }, { servers }) => {
      servers.lost = chance.below(60)
    },
  },
  'requests of the follower lost': {
    weight: 2,
    go: ({ chance }, { network }) => {
      network.lost = chance.below(60)
    },
  },
  'follower cut off': {
    weight: 2,
    go: ({ chance }, { network, servers }) => {
      network.cut = /./
      if (chance.below(2) === 0) servers.isFollowerCutOff = true
    },
  },
  'servers and follower back': { weight: 6, go: (_world, second) => second.heal() },
  'follower starts': { weight: 6, go: startFollower },
  'follower ends': { weight: 3, go: endFollower },
  'disk of the follower fails': { weight: 2, go: failFollower },
  'follower is asked what is private': { weight: 4, go: (world) => world.readPrivateFromFollower() },
  'a tail of the follower': { weight: 16, go: (world) => world.followOnSecond() },
  'follower is compared': { weight: 2, go: (world) => world.compareFollower() },
  'follower takes over': { weight: 3, go: takeOver },
  'leader hands over': { weight: 1, go: handOverToFollower },
}

type TakeOverStep = (world: World, second: SecondBox) => Promise<void> | void

export const takeOvers: Readonly<Record<string, FaultKind>> = Object.fromEntries(
  Object.entries(kinds).map(([name, { weight, go }]) => [name, { weight, go: (world) => go(world, world.second!) }]),
)

/** Makes sure that the second box has the board. False: it could not get it now. */
async function ensureFollower(world: World, second: SecondBox): Promise<boolean> {
  if (second.isFollower) return true
  second.servers.heal()
  if (!(await atRest(world))) return false
  // Lost messages are published again.
  await world.wait(60_000)
  if (!world.model.isCertain) return false
  second.copy(world.sim.memory.copy(machineDirectory), world.board.log)
  return true
}

/** With files of the first box, or with nothing, as a new one. */
async function startFollower(world: World, second: SecondBox): Promise<void> {
  const { chance } = world
  if (second.isRunning) return
  if (!second.isFollower && chance.below(2) === 0 && !(await ensureFollower(world, second))) return
  const operations = chance.below(4) === 0 ? 1 + chance.below(150) : Number.POSITIVE_INFINITY
  const isRunning = await second.start(operations, () => world.recover())
  world.count(isRunning ? 'followers started' : 'followers that did not start')
}

/** Until everything heals. */
function failFollower(world: World, { board }: SecondBox): void {
  const { chance } = world
  const { memory } = board.machine
  world.mayFault = true
  const how = chance.pick(['full', 'slow', 'syncs', 'writes', 'reads'])
  if (how === 'full') memory.bytesLeft = chance.below(100_000)
  else if (how === 'slow') memory.slowMs = chance.below(400)
  else if (how === 'syncs') memory.syncFailsAfter = chance.below(30)
  else if (how === 'writes') memory.writeFailsAfter = chance.below(30)
  else memory.readFailsAfter = chance.below(30)
}

async function endFollower(world: World, second: SecondBox): Promise<void> {
  const { chance } = world
  if (!second.isRunning) return
  const how = chance.pick(['killed', 'stopped', 'power', 'thread'])
  world.count(`followers ended: ${how}`)
  if (how === 'killed') await second.end()
  else if (how === 'stopped') await second.stop(() => world.recover())
  else if (how === 'power') second.board.machine.memory.cutAfter(1 + chance.below(60))
  else second.board.machine.killThread()
}

/** Under load, with a leader that is gone, or one that knows nothing of it and continues. */
async function takeOver(world: World, second: SecondBox): Promise<void> {
  const { sim, chance } = world
  if (!(await ensureFollower(world, second))) return
  // Some of it is only on the leader's disk when the leader is gone.
  second.servers.lost = chance.below(100)
  if (chance.below(2) === 0) world.postConcurrently()
  world.postInPrivateRooms()
  await world.wait(chance.below(200))
  second.servers.heal()
  let isUp = chance.below(2) === 0
  const end = async () => {
    isUp = false
    if (sim.memory.isPowerOff || chance.below(2) === 0) await sim.cutPower()
    else await sim.kill()
  }
  if (!isUp) await end()
  if (!(await second.lead(chance.below(3), end))) {
    world.count('take-overs refused to a new box')
    return isUp ? undefined : world.restart()
  }
  world.count(isUp ? 'take-overs from a running leader' : 'take-overs')
  if (isUp && (await sim.until(world.shortPause())) !== 'dark') world.postConcurrently()
  if (isUp) await sim.until(world.shortPause())
  await end()
  if (chance.below(2) === 0) await checkRefusesToLead(world)
  await runDespiteCuts(world, async () => {
    const settings = {
      config: world.board.config,
      settings: world.board.replication,
      openStream: second.servers.open,
      report: silent,
    }
    if (!(await standDown({ ...sim.platform, ...settings }))) throw new Violation('a deposed board does not know it')
  })
  await swapBoxes(world, second)
}

/** What it knows is nowhere else than on the first box: it publishes nothing, and shows no head. */
async function checkRefusesToLead(world: World): Promise<void> {
  const { sim, board } = world
  sim.memory.heal()
  if ((await sim.until(board.start())) !== 'dark' || sim.memory.isPowerOff)
    throw new Violation('a deposed board starts as a leader')
  await sim.kill()
}

async function handOverToFollower(world: World, second: SecondBox): Promise<void> {
  const { sim, board, chance } = world
  if (!(await ensureFollower(world, second)) || !second.hasKey) return
  await world.settle()
  second.servers.heal()
  if ((await sim.until(board.stop())) === 'dark') return world.recover()
  await sim.kill()
  const settings = {
    config: board.config,
    settings: board.replication,
    openStream: second.servers.open,
    report: silent,
  }
  await runDespiteCuts(world, () => handOver({ platform: sim.platform, ...settings, tell: silent }))
  await second.lead(chance.below(3), () => sim.kill())
  world.count('hand-overs')
  await swapBoxes(world, second)
}

/** A command on the stopped first box. After a power cut it is run again. */
async function runDespiteCuts({ sim, chance }: World, work: () => Promise<void>): Promise<void> {
  for (let cuts = chance.below(3); ; cuts--) {
    sim.memory.heal()
    if (cuts > 0) sim.memory.cutAfter(1 + chance.below(40))
    if ((await sim.until(work())) !== 'dark') break
    await sim.cutPower()
  }
  await sim.kill()
}

async function swapBoxes(world: World, second: SecondBox): Promise<void> {
  second.swap()
  await world.restart()
}
