/** How to be refused by the operations on works and credits. Time-dependent refusals use a board where works last for seconds. */
import { boardDirectory, startBoard } from './board-process.ts'
import { Client } from './client.ts'
import { World } from './operation-setups.ts'
import {
  byAnotherPerson,
  byRotatedKey,
  type RefusalCase,
  roomWithPolicy,
  send,
  sendExample,
  unsigned,
} from './refusals.ts'
import { reason, type Stage, type StagedWork, workAt } from './work-stages.ts'

type Values = Readonly<Record<string, string | number | readonly string[]>>

/** By one of the parties, about a work at this stage. */
const atStage =
  (
    name: string,
    stage: Stage,
    by: 'requester' | 'worker' | 'stranger' | 'operator',
    fields: (staged: StagedWork, world: World) => Values | Promise<Values> = () => ({}),
  ): RefusalCase =>
  async (world) => {
    const staged = await workAt(world, stage)
    const signer = by === 'stranger' ? world.someone() : by === 'operator' ? world.operator : staged[by]
    return send(world, name, signer, { event_id: staged.work, ...(await fields(staged, world)) })
  }

const data = (more: object): Values => ({ data: JSON.stringify({ schema: 1, ...more }) })
const wrongHash = () => data({ result_sha256: 'f'.repeat(64) })
const withResult = ({ result }: StagedWork) => ({ target: result })
const staleFence = () => ({ amount: 2 })

/** Refusals that every operation of a worker has. */
const workerRefusals = (name: string, stage: Stage, more: (staged: StagedWork) => Values = () => ({})) => ({
  not_found: sendExample(name),
  forbidden: atStage(name, stage, 'stranger', more),
  stale_fence: atStage(name, stage, 'worker', (staged) => ({ ...more(staged), ...staleFence() })),
})

let shortWorld: Promise<World> | undefined

/** A board whose works last for seconds, and whose quotas apply. */
function worldWithShortDeadlines({ operator }: World): Promise<World> {
  const limits = { work_deadline_seconds: 4, work_claim_margin: 1, work_live_claims: 1, work_live_holds: 2 }
  const env = {
    OPERATORS: operator.id,
    BROADSIDE_LIMITS: 'on',
    LIMITS: JSON.stringify({ ...limits, unsigned_commands_per_address_per_minute: null }),
  }
  shortWorld ??= startBoard({ directory: boardDirectory(), env }).then(
    async (board) => new World(await Client.of(board), operator),
  )
  return shortWorld
}

const withShortDeadlines =
  (refusalCase: RefusalCase): RefusalCase =>
  async (world) =>
    refusalCase(await worldWithShortDeadlines(world))

let overdue: Promise<ReadonlyMap<Stage, StagedWork>> | undefined

/** Works whose deadline has passed, at each stage that a test may need: waited for once. */
function overdueWorks(world: World): Promise<ReadonlyMap<Stage, StagedWork>> {
  const stages: readonly Stage[] = ['open', 'claimed', 'replied', 'rejected']
  const make = async () => {
    const works = await Promise.all(stages.map(async (stage) => [stage, await workAt(world, stage)] as const))
    const isLate = async ({ requester, work }: StagedWork) => {
      const found = (await world.run(requester, { operation: 'work.get', event_id: work })).work!
      return Number(found.deadline) <= Math.floor(Date.now() / 1_000)
    }
    for (const [, staged] of works)
      while (!(await isLate(staged))) await new Promise((resolve) => setTimeout(resolve, 200))
    return new Map(works)
  }
  overdue ??= make()
  return overdue
}

/** A command about a work whose deadline has passed. */
const afterDeadline = (name: string, stage: Stage, by: 'requester' | 'worker'): RefusalCase =>
  withShortDeadlines(async (world) => {
    const staged = (await overdueWorks(world)).get(stage)!
    const target = name === 'work.submit' ? { target: staged.result } : {}
    return send(world, name, staged[by], { event_id: staged.work, ...target })
  })

const onWorkInPrivateRoom =
  (name: string): RefusalCase =>
  async (world) => {
    const owner = await world.personWithCredits()
    const { room } = await world.privateRoom([], owner)
    const made = await world.run(owner, {
      operation: 'work.create',
      room,
      text: 'in private',
      amount: 5,
      ...data({ title: 'x' }),
    } as never)
    return send(world, name, world.someone(), { event_id: made.work!.id as string })
  }

/** The same request again. */
const requestTwice: RefusalCase = async (world) => {
  const signer = await world.personWithCredits()
  const event_id = await world.post(signer, { kind: 'request' })
  const command = { operation: 'work.create', event_id, amount: 5, data: '{"schema":1,"title":"x"}' }
  await world.run(signer, command)
  return world.client.command(signer, command)
}

async function createFrom(world: World, event_id: string) {
  const command = { operation: 'work.create', event_id, amount: 5, data: '{"schema":1,"title":"x"}' }
  return world.client.command(await world.personWithCredits(), command)
}

/** The example in this room, by a person with the credits and no other right to it. */
function createIn(make: (world: World) => Promise<{ readonly room: string }>): RefusalCase {
  return async (world) =>
    send(world, 'work.create', await world.personWithCredits(), { room: (await make(world)).room })
}

export const workRefusalCases: Readonly<Record<string, Readonly<Record<string, RefusalCase>>>> = {
  'work.create': {
    missing_field: async (world) =>
      world.client.command(await world.personWithCredits(), {
        operation: 'work.create',
        amount: 5,
        data: '{"schema":1,"title":"x"}',
      }),
    not_found: (world) => createFrom(world, '0123456789abcdef'.repeat(2)),
    forbidden: async (world) => createFrom(world, await world.post(world.someone(), { kind: 'request' })),
    private_room: createIn(async (world) => world.privateRoom()),
    room_write_restricted: createIn((world) => roomWithPolicy(world, { write: 'members' })),
    wrong_state: createIn((world) => roomWithPolicy(world, { closed: true })),
    proof_required: createIn((world) => roomWithPolicy(world, { proof_bits: 20 })),
    insufficient_credits: sendExample('work.create'),
    quota_exhausted: withShortDeadlines(async (world) => {
      const signer = await world.personWithCredits()
      for (let n = 0; n < 2; n++) await send(world, 'work.create', signer)
      return send(world, 'work.create', signer)
    }),
    conflict: requestTwice,
  },
  'work.edit': {
    not_found: sendExample('work.edit'),
    forbidden: byAnotherPerson('work.edit'),
    wrong_state: atStage('work.edit', 'claimed', 'requester'),
    room_write_restricted: async (world) => {
      const { owner, room } = await world.room()
      const requester = await world.personWithCredits()
      const text = { operation: 'work.create', room, text: 'in the room', amount: 5, ...data({ title: 'x' }) } as never
      const { work } = await world.run(requester, text)
      await world.run(owner, { operation: 'room.ban', room, target: requester.id, reason: 'x' })
      return send(world, 'work.edit', requester, { event_id: work!.id as string })
    },
  },
  'work.raise': {
    not_found: sendExample('work.raise'),
    forbidden: byAnotherPerson('work.raise'),
    wrong_state: atStage('work.raise', 'claimed', 'requester'),
    insufficient_credits: atStage('work.raise', 'open', 'requester', () => ({ amount: 100_000 })),
  },
  'work.cancel': {
    not_found: sendExample('work.cancel'),
    forbidden: byAnotherPerson('work.cancel'),
    wrong_state: atStage('work.cancel', 'claimed', 'requester'),
  },
  'work.claim': {
    not_found: sendExample('work.claim'),
    not_eligible: atStage('work.claim', 'open', 'requester'),
    wrong_state: atStage('work.claim', 'claimed', 'stranger'),
    conflict: atStage('work.claim', 'open', 'worker', () => data({ version_id: 'f'.repeat(32) })),
    expired: afterDeadline('work.claim', 'open', 'worker'),
    rate_limited: withShortDeadlines(async (world) => {
      const { worker, work } = await workAt(world, 'claimed')
      await world.run(worker, { operation: 'work.release', event_id: work, amount: 1 })
      return send(world, 'work.claim', worker, { event_id: work })
    }),
    quota_exhausted: withShortDeadlines(async (world) => {
      const { work } = await workAt(world, 'open')
      const { worker } = await workAt(world, 'claimed')
      return send(world, 'work.claim', worker, { event_id: work })
    }),
  },
  'work.renew': {
    ...workerRefusals('work.renew', 'claimed'),
    wrong_state: atStage('work.renew', 'submitted', 'worker'),
    expired: afterDeadline('work.renew', 'claimed', 'worker'),
  },
  'work.release': {
    ...workerRefusals('work.release', 'claimed'),
    wrong_state: atStage('work.release', 'accepted', 'worker'),
  },
  'work.submit': {
    ...workerRefusals('work.submit', 'replied', withResult),
    wrong_state: atStage('work.submit', 'accepted', 'worker', withResult),
    conflict: atStage('work.submit', 'replied', 'worker', (staged) => ({ ...withResult(staged), ...wrongHash() })),
    expired: afterDeadline('work.submit', 'replied', 'worker'),
  },
  'work.accept': {
    not_found: sendExample('work.accept'),
    not_the_reviewer: byAnotherPerson('work.accept'),
    wrong_state: atStage('work.accept', 'claimed', 'requester'),
    conflict: atStage('work.accept', 'submitted', 'requester', wrongHash),
  },
  'work.revise': {
    not_found: sendExample('work.revise'),
    not_the_reviewer: byAnotherPerson('work.revise'),
    wrong_state: atStage('work.revise', 'claimed', 'requester'),
  },
  'work.reject': {
    not_found: sendExample('work.reject'),
    not_the_reviewer: byAnotherPerson('work.reject'),
    wrong_state: atStage('work.reject', 'claimed', 'requester'),
  },
  'work.dispute': {
    ...workerRefusals('work.dispute', 'rejected'),
    wrong_state: atStage('work.dispute', 'submitted', 'worker'),
    insufficient_credits: async (world) => {
      const { worker, work } = await workAt(world, 'rejected')
      const { available } = (await world.run(worker, { operation: 'credit.balance' })) as unknown as {
        available: number
      }
      const all = { operation: 'credit.transfer', target: world.someone().id, amount: available - 1 }
      await world.run(worker, all)
      return send(world, 'work.dispute', worker, { event_id: work })
    },
  },
  'work.concede': {
    ...workerRefusals('work.concede', 'rejected'),
    wrong_state: atStage('work.concede', 'submitted', 'worker'),
  },
  'work.reopen': {
    not_found: sendExample('work.reopen'),
    forbidden: byAnotherPerson('work.reopen'),
    wrong_state: atStage('work.reopen', 'submitted', 'requester'),
    expired: afterDeadline('work.reopen', 'rejected', 'requester'),
  },
  'work.rule': {
    not_found: sendExample('work.rule'),
    forbidden: byAnotherPerson('work.rule'),
    wrong_state: atStage('work.rule', 'rejected', 'operator', () => ({ reason })),
  },
  'work.get': { not_found: sendExample('work.get'), private_room: onWorkInPrivateRoom('work.get') },
  'work.list': {
    not_found: (world) => send(world, 'work.list', world.someone(), { room: 'no-such-room' }),
    private_room: async (world) =>
      send(world, 'work.list', world.someone(), { room: (await world.privateRoom()).room }),
  },
  'work.history': { not_found: sendExample('work.history'), private_room: onWorkInPrivateRoom('work.history') },
  'credit.balance': {
    unsigned: unsigned('credit.balance'),
    key_rotated: byRotatedKey('credit.balance'),
    forbidden: (world) => send(world, 'credit.balance', world.someone(), { target: world.someone().id }),
    not_found: (world) => send(world, 'credit.balance', world.operator, { target: '@no-such-handle' }),
  },
  'credit.history': {
    unsigned: (world) => world.client.send(JSON.stringify({ operation: 'credit.history' })),
    not_found: (world) => send(world, 'credit.history', world.operator, { target: '@no-such-handle' }),
    forbidden: (world) => send(world, 'credit.history', world.someone(), { target: world.someone().id }),
  },
  'credit.transfer': { insufficient_credits: sendExample('credit.transfer') },
  'credit.grant': { forbidden: sendExample('credit.grant') },
}
