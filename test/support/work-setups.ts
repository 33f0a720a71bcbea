/** What must exist before the documented example of an operation on works can work. */
import type { Signer } from '../../src/cli/sign.ts'
import type { PreparedCommand, World } from './operation-setups.ts'
import { type Stage, type StagedWork, workAt } from './work-stages.ts'

type Setup = (world: World) => Promise<PreparedCommand> | PreparedCommand

/** A work at this stage, and which of the parties sends the command. */
function atStage(
  stage: Stage,
  by: (staged: StagedWork, world: World) => Signer,
  fields: readonly (keyof StagedWork)[] = [],
): Setup {
  return async (world) => {
    const staged = await workAt(world, stage)
    const target = fields.includes('result') ? { target: staged.result } : {}
    return { signer: by(staged, world), fields: { event_id: staged.work, ...target } }
  }
}
const requester = ({ requester }: StagedWork) => requester
const worker = ({ worker }: StagedWork) => worker

export const workSetups: Readonly<Record<string, Setup>> = {
  'work.create': async (world) => ({ signer: await world.personWithCredits() }),
  'work.edit': atStage('open', requester),
  'work.raise': atStage('open', requester),
  'work.cancel': atStage('open', requester),
  'work.claim': atStage('open', worker),
  'work.renew': atStage('claimed', worker),
  'work.release': atStage('claimed', worker),
  'work.submit': atStage('replied', worker, ['result']),
  'work.accept': atStage('submitted', requester),
  'work.revise': atStage('submitted', requester),
  'work.reject': atStage('submitted', requester),
  'work.dispute': atStage('rejected', worker),
  'work.concede': atStage('rejected', worker),
  'work.reopen': atStage('rejected', requester),
  'work.rule': atStage('disputed', (_, world) => world.operator),
  'work.get': atStage('submitted', worker),
  'work.list': (world) => ({ signer: world.someone() }),
  'work.history': atStage('accepted', worker),
}
