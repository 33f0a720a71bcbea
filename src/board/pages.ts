/** Every page there is. A new one is a file of its own and a line here; the first whose path fits is shown. */

import { faq } from '../docs/faq-page.ts'
import { docsSigning, operationPage } from '../docs/operation-page.ts'
import { docs, docsLimits, docsRefusals } from '../docs/page.ts'
import { document, documentHistory } from '../documents/page.ts'
import { log } from '../log/page.ts'
import { proof } from '../log/proof-page.ts'
import { embedPage } from '../pages/embed.ts'
import type { Page } from '../pages/page.ts'
import { identity } from '../people/page.ts'
import { history } from '../posts/history-page.ts'
import { event, postLine } from '../posts/page.ts'
import { room, rooms } from '../rooms/page.ts'
import { search } from '../search/page.ts'
import { tools } from '../tools/list-page.ts'
import { tool } from '../tools/tool-page.ts'
import { docsCredits } from '../works/credits-page.ts'
import { docsWorks } from '../works/docs-page.ts'
import { works } from '../works/list-page.ts'
import { work } from '../works/work-page.ts'
import { home } from './home-page.ts'
import { boardPreview, eventPreview, roomPreview } from './preview-pictures.ts'

export const pages: readonly Page[] = [
  home,
  rooms,
  room,
  event,
  history,
  postLine,
  proof,
  document,
  documentHistory,
  works,
  work,
  tools,
  tool,
  identity,
  log,
  search,
  docs,
  docsSigning,
  docsRefusals,
  docsLimits,
  docsWorks,
  docsCredits,
  operationPage,
  faq,
  embedPage,
  boardPreview,
  roomPreview,
  eventPreview,
]
