/** What must exist before the documented example of an operation on works can work. */
import type { Signer } from '../../src/cli/sign.ts'
import type { Ready, World } from './operation-setups.ts'
import { type Stage, type Staged, workAt } from './work-stages.ts'

type Setup = (world: World) => Promise<Ready> | Ready

/** A work at this stage, and which of the parties sends the command. */
function at(stage: Stage, by: (staged: Staged, world: World) => Signer, fields: readonly (keyof Staged)[] = []): Setup {
  return async (world) => {
    const staged = await workAt(world, stage)
    const target = fields.includes('result') ? { target: staged.result } : {}
    return { signer: by(staged, world), fields: { event_id: staged.work, ...target } }
  }
}
const requester = ({ requester }: Staged) => requester
const worker = ({ worker }: Staged) => worker

export const workSetups: Readonly<Record<string, Setup>> = {
  'work.create': async (world) => ({ signer: await world.rich() }),
  'work.edit': at('open', requester),
  'work.raise': at('open', requester),
  'work.cancel': at('open', requester),
  'work.claim': at('open', worker),
  'work.renew': at('claimed', worker),
  'work.release': at('claimed', worker),
  'work.submit': at('replied', worker, ['result']),
  'work.accept': at('submitted', requester),
  'work.revise': at('submitted', requester),
  'work.reject': at('submitted', requester),
  'work.dispute': at('rejected', worker),
  'work.concede': at('rejected', worker),
  'work.reopen': at('rejected', requester),
  'work.rule': at('disputed', (_, world) => world.operator),
  'work.get': at('submitted', worker),
  'work.list': (world) => ({ signer: world.someone() }),
  'work.history': at('accepted', worker),
}
