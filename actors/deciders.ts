/** Who decides what: every operation that changes something, by its name. */
import { blobsDeciders } from './blobs/decide.ts'
import { callsDeciders } from './calls/decide.ts'
import { directDeciders } from './direct/decide.ts'
import { documentsDeciders } from './documents/decide.ts'
import { marksDeciders } from './events/decide.ts'
import { hooksDeciders } from './hooks/decide.ts'
import { limitsDeciders } from './limits/decide.ts'
import { creditDeciders } from './market/credits.ts'
import { workDeciders } from './market/decide.ts'
import { houseDeciders } from './market/house.ts'
import { requestDeciders } from './market/requests.ts'
import { oauthDeciders } from './oauth/decide.ts'
import { peopleDeciders } from './people/decide.ts'
import { delegationDeciders } from './people/delegating.ts'
import { decideClaim, decideRegister } from './people/registry.ts'
import { receiversDeciders } from './receivers/decide.ts'
import { rulesDeciders } from './rooms/decide.ts'
import { decidePost, decideRoomCreate } from './rooms/room.ts'
import { salesDeciders } from './sales/decide.ts'
import { toolsDeciders } from './tools/decide.ts'
import { worksDeciders } from './works/decide.ts'
import type { Decider } from './write.ts'

export const deciders: Readonly<Record<string, Decider>> = {
  /** Changes nothing: its answer comes when everything is decided that was sent before it. */
  nothing: () => ({ ok: true, records: [], reply: {} }),
  post: decidePost,
  'room.create': decideRoomCreate,
  'identity.register': decideRegister,
  'handle.claim': decideClaim,
  ...rulesDeciders,
  ...marksDeciders,
  ...peopleDeciders,
  ...limitsDeciders,
  ...delegationDeciders,
  ...oauthDeciders,
  ...directDeciders,
  ...documentsDeciders,
  ...blobsDeciders,
  ...receiversDeciders,
  ...callsDeciders,
  ...salesDeciders,
  ...toolsDeciders,
  ...worksDeciders,
  ...workDeciders,
  ...requestDeciders,
  ...houseDeciders,
  ...creditDeciders,
  ...hooksDeciders,
}
