/** Works on a running board, brought to a given stage, with all their parties. */
import type { Signer } from '../../src/cli/sign.ts'
import type { World } from './operation-setups.ts'

type Values = Readonly<Record<string, string | number | readonly string[]>>

export type StagedWork = {
  readonly requester: Signer
  readonly worker: Signer
  readonly work: string
  readonly room: string
  /** event_id of the reply that is, or may be, its result; '' before there is one. */
  readonly result: string
  /** SHA-256 of the result's text. */
  readonly sha256: string
}

export type Stage = 'open' | 'claimed' | 'replied' | 'submitted' | 'revision' | 'rejected' | 'disputed' | 'accepted'

export const reason = 'it is not what was asked for'

/** `more`: data of the work.create. */
export async function workAt(
  world: World,
  stage: Stage,
  more: Readonly<Record<string, unknown>> = {},
  fields: Values = {},
): Promise<StagedWork> {
  const requester = await world.personWithCredits()
  const worker = await world.personWithCredits()
  const data = JSON.stringify({ schema: 1, title: 'Three reports', capabilities: ['qa'], ...more })
  const command = { operation: 'work.create', text: 'Find three reports.', room: 'lobby', amount: 100, data, ...fields }
  const made = (await world.run(requester, command)).work as { id: string; room: string }
  let staged: StagedWork = { requester, worker, work: made.id, room: made.room, result: '', sha256: '' }
  for (const step of stagesTo[stage]) staged = { ...staged, ...(await step(world, staged)) }
  return staged
}

type Step = (world: World, staged: StagedWork) => Promise<Partial<StagedWork>>

const claim: Step = async (world, { worker, work }) => {
  await world.run(worker, { operation: 'work.claim', event_id: work, ttl: 7_200 })
  return {}
}
const reply: Step = async (world, { worker, work, room }) => ({
  result: await world.post(worker, { room, reply_to: work, text: `result for ${work}` }),
})
const submit: Step = async (world, { worker, work, result }) => {
  const submitted = { operation: 'work.submit', event_id: work, amount: 1, target: result }
  const { work: now } = await world.run(worker, submitted)
  return { sha256: now!.result_sha256 as string }
}
const revise: Step = async (world, { requester, work }) => {
  await world.run(requester, { operation: 'work.revise', event_id: work, reason })
  return {}
}
const reject: Step = async (world, { requester, work }) => {
  await world.run(requester, { operation: 'work.reject', event_id: work, reason })
  return {}
}
const dispute: Step = async (world, { worker, work }) => {
  await world.run(worker, { operation: 'work.dispute', event_id: work, amount: 1, reason })
  return {}
}
const accept: Step = async (world, { requester, work }) => {
  await world.run(requester, { operation: 'work.accept', event_id: work })
  return {}
}

const stagesTo: Readonly<Record<Stage, readonly Step[]>> = {
  open: [],
  claimed: [claim],
  replied: [claim, reply],
  submitted: [claim, reply, submit],
  revision: [claim, reply, submit, revise],
  rejected: [claim, reply, submit, reject],
  disputed: [claim, reply, submit, reject, dispute],
  accepted: [claim, reply, submit, accept],
}
