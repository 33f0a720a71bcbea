/**
 * Reads that the tools directory answers. The feed first says how far the log has come, so that callers find what they have
 * just written.
 */

import { sizes } from '../../actors/kernel/limits.ts'
import { refusal } from '../../actors/kernel/refusals.ts'
import type { AnsweredBy } from '../../actors/operations.ts'
import type { Actors } from '../command/ports.ts'
import { dataOf, type ReadRequest, type Take, unending } from '../reads/read.ts'
import type { IndexAnswers, ToolsAsk } from './asks.ts'
import type { Filters } from './parse.ts'

type Asks = Readonly<Record<AnsweredBy<'directory'> | keyof IndexAnswers, (request: ReadRequest) => ToolsAsk>>

const asks: Asks = {
  'tools.search': searchAsk,
  'tools.get': ({ args }) => ['look', String(args.target)],
  'tools.subject': ({ args, reader }) => ['subject', String(args.subject), reader],
  'tools.reviewer': ({ args, reader }) => ['reviewer', String(args.subject), reader],
}

/** Answers the read if it is one of these; returns false if it is not. */
export function readTools(actors: Actors, request: ReadRequest, answer: Take): boolean {
  if (!isOfIndex(request.op)) return false
  const ask = asks[request.op]
  actors.read({ op: 'tools.begin', args: {}, reader: '' }, (begun) => {
    if (begun === undefined || !begun.ok) return answer(begun)
    const { through } = dataOf(begun)
    actors.askTools(ask(request), through, (found) => answer(found?.ok ? { ...found, until: unending } : found))
  })
  return true
}

function isOfIndex(op: string): op is keyof Asks {
  return op in asks
}

function searchAsk({ args }: ReadRequest): ToolsAsk {
  const text = (name: string) => (args[name] === undefined ? '' : String(args[name]))
  const given = (['category', 'max_price', 'output', 'network', 'protocol', 'door'] as const)
    .filter((name) => text(name) !== '')
    .map((name) => [name, text(name).toLowerCase()] as const)
  const type = text('type') === '' ? {} : { type: text('type').split(',') }
  const said = { ...Object.fromEntries(given), ...type } as Partial<Filters>
  const limit = args.limit === undefined ? sizes.tools_page_default : Number(args.limit)
  return ['search', { text: text('query'), said, cursor: text('cursor'), limit }]
}

export const noSubject = (subject: string) =>
  refusal('not_found', `no tool here has the subject_id ${subject}: tools.get shows that of a tool`, 'target')
