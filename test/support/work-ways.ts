/** How to be refused by the operations on works and credits. Time-dependent refusals use a board where works last for seconds. */
import { boardDirectory, startBoard } from './board-process.ts'
import { Client } from './client.ts'
import { World } from './operation-setups.ts'
import { asIs, byAnother, byOldKey, send, underPolicy, unsigned, type Way } from './refused.ts'
import { reason, type Stage, type Staged, workAt } from './work-stages.ts'

type Values = Readonly<Record<string, string | number | readonly string[]>>

/** By one of the parties, about a work at this stage. */
const at =
  (
    name: string,
    stage: Stage,
    by: 'requester' | 'worker' | 'stranger' | 'operator',
    fields: (staged: Staged, world: World) => Values | Promise<Values> = () => ({}),
  ): Way =>
  async (world) => {
    const staged = await workAt(world, stage)
    const signer = by === 'stranger' ? world.someone() : by === 'operator' ? world.operator : staged[by]
    return send(world, name, signer, { event_id: staged.work, ...(await fields(staged, world)) })
  }

const data = (more: object): Values => ({ data: JSON.stringify({ schema: 1, ...more }) })
const wrongHash = () => data({ result_sha256: 'f'.repeat(64) })
const withResult = ({ result }: Staged) => ({ target: result })
const staleFence = () => ({ amount: 2 })

/** Refusals that every operation of a worker has. */
const ofWorker = (name: string, stage: Stage, more: (staged: Staged) => Values = () => ({})) => ({
  not_found: asIs(name),
  forbidden: at(name, stage, 'stranger', more),
  stale_fence: at(name, stage, 'worker', (staged) => ({ ...more(staged), ...staleFence() })),
})

let brief: Promise<World> | undefined

/** A board whose works last for seconds, and whose quotas apply. */
function briefWorld({ operator }: World): Promise<World> {
  const limits = { work_deadline_seconds: 4, work_claim_margin: 1, work_live_claims: 1, work_live_holds: 2 }
  const env = {
    OPERATORS: operator.id,
    BROADSIDE_LIMITS: 'on',
    LIMITS: JSON.stringify({ ...limits, unsigned_commands_per_address_per_minute: null }),
  }
  brief ??= startBoard({ directory: boardDirectory(), env }).then(
    async (board) => new World(await Client.of(board), operator),
  )
  return brief
}

const briefly =
  (way: Way): Way =>
  async (world) =>
    way(await briefWorld(world))

let late: Promise<ReadonlyMap<Stage, Staged>> | undefined

/** Works whose deadline has passed, at each stage that a test may need: waited for once. */
function lateWorks(world: World): Promise<ReadonlyMap<Stage, Staged>> {
  const stages: readonly Stage[] = ['open', 'claimed', 'replied', 'rejected']
  const make = async () => {
    const works = await Promise.all(stages.map(async (stage) => [stage, await workAt(world, stage)] as const))
    const isLate = async ({ requester, work }: Staged) => {
      const found = (await world.done(requester, { operation: 'work.get', event_id: work })).work!
      return Number(found.deadline) <= Math.floor(Date.now() / 1_000)
    }
    for (const [, staged] of works)
      while (!(await isLate(staged))) await new Promise((resolve) => setTimeout(resolve, 200))
    return new Map(works)
  }
  late ??= make()
  return late
}

/** A command about a work whose deadline has passed. */
const tooLate = (name: string, stage: Stage, by: 'requester' | 'worker'): Way =>
  briefly(async (world) => {
    const staged = (await lateWorks(world)).get(stage)!
    const target = name === 'work.submit' ? { target: staged.result } : {}
    return send(world, name, staged[by], { event_id: staged.work, ...target })
  })

const inPrivateRoom =
  (name: string): Way =>
  async (world) => {
    const owner = await world.rich()
    const { room } = await world.privateRoom([], owner)
    const made = await world.done(owner, {
      operation: 'work.create',
      room,
      text: 'in private',
      amount: 5,
      ...data({ title: 'x' }),
    } as never)
    return send(world, name, world.someone(), { event_id: made.work!.id as string })
  }

/** The same request again. */
const twiceAsked: Way = async (world) => {
  const signer = await world.rich()
  const event_id = await world.post(signer, { kind: 'request' })
  const asked = { operation: 'work.create', event_id, amount: 5, data: '{"schema":1,"title":"x"}' }
  await world.done(signer, asked)
  return world.client.command(signer, asked)
}

async function asked(world: World, event_id: string) {
  const command = { operation: 'work.create', event_id, amount: 5, data: '{"schema":1,"title":"x"}' }
  return world.client.command(await world.rich(), command)
}

/** The example in this room, by a person with the credits and no other right to it. */
function askedIn(make: (world: World) => Promise<{ readonly room: string }>): Way {
  return async (world) => send(world, 'work.create', await world.rich(), { room: (await make(world)).room })
}

export const workWays: Readonly<Record<string, Readonly<Record<string, Way>>>> = {
  'work.create': {
    missing_field: async (world) =>
      world.client.command(await world.rich(), {
        operation: 'work.create',
        amount: 5,
        data: '{"schema":1,"title":"x"}',
      }),
    not_found: (world) => asked(world, '0123456789abcdef'.repeat(2)),
    forbidden: async (world) => asked(world, await world.post(world.someone(), { kind: 'request' })),
    private_room: askedIn(async (world) => world.privateRoom()),
    room_write_restricted: askedIn((world) => underPolicy(world, { write: 'members' })),
    wrong_state: askedIn((world) => underPolicy(world, { closed: true })),
    proof_required: askedIn((world) => underPolicy(world, { proof_bits: 20 })),
    insufficient_credits: asIs('work.create'),
    quota_exhausted: briefly(async (world) => {
      const signer = await world.rich()
      for (let n = 0; n < 2; n++) await send(world, 'work.create', signer)
      return send(world, 'work.create', signer)
    }),
    conflict: twiceAsked,
  },
  'work.edit': {
    not_found: asIs('work.edit'),
    forbidden: byAnother('work.edit'),
    wrong_state: at('work.edit', 'claimed', 'requester'),
    room_write_restricted: async (world) => {
      const { owner, room } = await world.room()
      const requester = await world.rich()
      const text = { operation: 'work.create', room, text: 'in the room', amount: 5, ...data({ title: 'x' }) } as never
      const { work } = await world.done(requester, text)
      await world.done(owner, { operation: 'room.ban', room, target: requester.id, reason: 'x' })
      return send(world, 'work.edit', requester, { event_id: work!.id as string })
    },
  },
  'work.raise': {
    not_found: asIs('work.raise'),
    forbidden: byAnother('work.raise'),
    wrong_state: at('work.raise', 'claimed', 'requester'),
    insufficient_credits: at('work.raise', 'open', 'requester', () => ({ amount: 100_000 })),
  },
  'work.cancel': {
    not_found: asIs('work.cancel'),
    forbidden: byAnother('work.cancel'),
    wrong_state: at('work.cancel', 'claimed', 'requester'),
  },
  'work.claim': {
    not_found: asIs('work.claim'),
    not_eligible: at('work.claim', 'open', 'requester'),
    wrong_state: at('work.claim', 'claimed', 'stranger'),
    conflict: at('work.claim', 'open', 'worker', () => data({ version_id: 'f'.repeat(32) })),
    expired: tooLate('work.claim', 'open', 'worker'),
    rate_limited: briefly(async (world) => {
      const { worker, work } = await workAt(world, 'claimed')
      await world.done(worker, { operation: 'work.release', event_id: work, amount: 1 })
      return send(world, 'work.claim', worker, { event_id: work })
    }),
    quota_exhausted: briefly(async (world) => {
      const { work } = await workAt(world, 'open')
      const { worker } = await workAt(world, 'claimed')
      return send(world, 'work.claim', worker, { event_id: work })
    }),
  },
  'work.renew': {
    ...ofWorker('work.renew', 'claimed'),
    wrong_state: at('work.renew', 'submitted', 'worker'),
    expired: tooLate('work.renew', 'claimed', 'worker'),
  },
  'work.release': {
    ...ofWorker('work.release', 'claimed'),
    wrong_state: at('work.release', 'accepted', 'worker'),
  },
  'work.submit': {
    ...ofWorker('work.submit', 'replied', withResult),
    wrong_state: at('work.submit', 'accepted', 'worker', withResult),
    conflict: at('work.submit', 'replied', 'worker', (staged) => ({ ...withResult(staged), ...wrongHash() })),
    expired: tooLate('work.submit', 'replied', 'worker'),
  },
  'work.accept': {
    not_found: asIs('work.accept'),
    not_the_reviewer: byAnother('work.accept'),
    wrong_state: at('work.accept', 'claimed', 'requester'),
    conflict: at('work.accept', 'submitted', 'requester', wrongHash),
  },
  'work.revise': {
    not_found: asIs('work.revise'),
    not_the_reviewer: byAnother('work.revise'),
    wrong_state: at('work.revise', 'claimed', 'requester'),
  },
  'work.reject': {
    not_found: asIs('work.reject'),
    not_the_reviewer: byAnother('work.reject'),
    wrong_state: at('work.reject', 'claimed', 'requester'),
  },
  'work.dispute': {
    ...ofWorker('work.dispute', 'rejected'),
    wrong_state: at('work.dispute', 'submitted', 'worker'),
    insufficient_credits: async (world) => {
      const { worker, work } = await workAt(world, 'rejected')
      const { available } = (await world.done(worker, { operation: 'credit.balance' })) as unknown as {
        available: number
      }
      const all = { operation: 'credit.transfer', target: world.someone().id, amount: available - 1 }
      await world.done(worker, all)
      return send(world, 'work.dispute', worker, { event_id: work })
    },
  },
  'work.concede': {
    ...ofWorker('work.concede', 'rejected'),
    wrong_state: at('work.concede', 'submitted', 'worker'),
  },
  'work.reopen': {
    not_found: asIs('work.reopen'),
    forbidden: byAnother('work.reopen'),
    wrong_state: at('work.reopen', 'submitted', 'requester'),
    expired: tooLate('work.reopen', 'rejected', 'requester'),
  },
  'work.rule': {
    not_found: asIs('work.rule'),
    forbidden: byAnother('work.rule'),
    wrong_state: at('work.rule', 'rejected', 'operator', () => ({ reason })),
  },
  'work.get': { not_found: asIs('work.get'), private_room: inPrivateRoom('work.get') },
  'work.list': {
    not_found: (world) => send(world, 'work.list', world.someone(), { room: 'no-such-room' }),
    private_room: async (world) =>
      send(world, 'work.list', world.someone(), { room: (await world.privateRoom()).room }),
  },
  'work.history': { not_found: asIs('work.history'), private_room: inPrivateRoom('work.history') },
  'credit.balance': {
    unsigned: unsigned('credit.balance'),
    key_rotated: byOldKey('credit.balance'),
    forbidden: (world) => send(world, 'credit.balance', world.someone(), { target: world.someone().id }),
    not_found: (world) => send(world, 'credit.balance', world.operator, { target: '@no-such-handle' }),
  },
  'credit.history': {
    unsigned: (world) => world.client.send(JSON.stringify({ operation: 'credit.history' })),
    not_found: (world) => send(world, 'credit.history', world.operator, { target: '@no-such-handle' }),
    forbidden: (world) => send(world, 'credit.history', world.someone(), { target: world.someone().id }),
  },
  'credit.transfer': { insufficient_credits: asIs('credit.transfer') },
  'credit.grant': { forbidden: asIs('credit.grant') },
}
