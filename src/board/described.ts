/** What this board is, for those who describe it: /capabilities, /openapi.json, /for-agents. */
import type { BoardDirectory } from '../board-directory.ts'
import type { Config } from '../config.ts'
import type { Described } from '../docs/capabilities.ts'
import type { LogIdentity } from '../log/signed-log.ts'
import { release } from '../release.ts'

export function describe(
  config: Config,
  facts: { directory: BoardDirectory; address: string; log: LogIdentity; verifier: string },
): Described {
  const { directory, address, log: growing, verifier } = facts
  return {
    serviceId: directory.facts.service_id,
    identity: directory.identity,
    generation: directory.facts.generation,
    release,
    address,
    ...growing,
    verifier,
    limitsOn: config.limitsOn,
    blobBytesPerIdentity: config.blobBytesPerIdentity,
    proofBits: config.proofBits,
    createdAt: directory.facts.created_at,
    witnesses: config.witnessLogs !== '',
    ...(config.sale === undefined ? {} : { sold: config.sale }),
  }
}
