/** The tools directory in the sweeps over all operations: what must exist for an example, and how each is refused. */

import { operationByName } from '../../actors/operations.ts'
import type { Signer } from '../../src/cli/sign.ts'
import type { Answer } from './client.ts'
import type { PreparedCommand, World } from './operation-setups.ts'

type Setup = (world: World) => Promise<PreparedCommand> | PreparedCommand

const publishData = operationByName.get('tools.publish')!.example.data as string

/** Id of a new listing of this person. */
export async function publishListing(world: World, signer: Signer, more: object = {}): Promise<string> {
  const data = JSON.stringify({ ...(JSON.parse(publishData) as object), ...more })
  return (await world.run(signer, { operation: 'tools.publish', data })).tool!.id as string
}

/** Subject of a new listing of this person. */
export async function publishSubject(world: World, signer: Signer): Promise<string> {
  const data = publishData
  return (await world.run(signer, { operation: 'tools.publish', data })).tool!.subject_id as string
}

const ownListing: Setup = async (world) => {
  const signer = world.someone()
  return { signer, fields: { target: await publishListing(world, signer) } }
}
const anyone: Setup = (world) => ({ signer: world.someone() })

export const toolSetups: Readonly<Record<string, Setup>> = {
  'tools.publish': anyone,
  'tools.update': ownListing,
  'tools.withdraw': ownListing,
  'tools.import': (world) => ({ signer: world.operator }),
  'tools.search': anyone,
  // Nothing listens on port 1, and nothing is sent there: the lab reports that immediately.
  'tools.probe': async (world) => {
    const signer = world.someone()
    return { signer, fields: { target: await publishListing(world, signer, { url: 'http://127.0.0.1:1/weather' }) } }
  },
  'tools.get': anyone,
  'tools.review': async (world) => ({
    signer: world.someone(),
    fields: { target: await publishSubject(world, world.someone()) },
  }),
  'tools.reviews': anyone,
  'tools.call': anyone,
  'tools.relay': async (world) => ({
    signer: world.operator,
    fields: { target: await publishListing(world, world.someone()) },
  }),
}

/** A tool that answers, called once more than a day allows. */
export async function exhaustAllowance(world: World): Promise<Answer> {
  const signer = world.someone()
  const target = await publishListing(world, world.someone(), { url: `${world.client.address}/healthz` })
  const call = () => world.client.command(signer, { operation: 'tools.call', target, data: '{"schema":1}' })
  for (let n = 0; n < 20; n++) await call()
  return call()
}
