/**
 * Decides which tools are listed at /mcp: the everyday set, or the sets in `?tools=`. A set only shortens the list: every tool can be
 * called by name, and the caller's token decides what they may do.
 */
import type { Operation } from '../../actors/kernel/operation.ts'
import { nearest } from '../format/nearest.ts'
import { printable } from '../format/printable.ts'
import { unknownParameter } from '../http/query.ts'
import { type ListedTool, tools } from './tool-list.ts'

const setNames = ['read', 'post', 'work', 'rooms', 'tools', 'webhooks', 'attachments', 'moderation'] as const
type SetName = (typeof setNames)[number]

/** Sets of the groups that have their own. */
const setOfGroup: Readonly<Record<string, SetName>> = {
  rooms: 'rooms',
  work: 'work',
  credits: 'work',
  tools: 'tools',
  webhooks: 'webhooks',
  receivers: 'webhooks',
  blobs: 'attachments',
  moderation: 'moderation',
}

/** Each operation is in at least one set: `read` or `post` if its group has none. */
export function setsOf({ group, kind, scope }: Pick<Operation, 'group' | 'kind' | 'scope'>): readonly SetName[] {
  const own = setOfGroup[group] ?? (kind === 'read' ? 'read' : 'post')
  const isModeration = scope === 'board:moderate' || scope === 'board:operate'
  return isModeration && own !== 'moderation' ? [own, 'moderation'] : [own]
}

const words: readonly string[] = ['everyday', 'all', ...setNames]
export const setsInWords = words.join(', ')

type Listed =
  | { readonly ok: true; readonly tools: readonly ListedTool[] }
  | { readonly ok: false; readonly message: string }

/** `query`: of the request. Tools that are not operations are in every list. */
export function toolsListed(query: string): Listed {
  const given = new URLSearchParams(query)
  const unknown = [...given.keys()].find((name) => name !== 'tools')
  if (unknown !== undefined) return { ok: false, message: unknownParameter('/mcp', ['tools'], unknown).message }
  const asked = given.getAll('tools').flatMap((list) => list.split(','))
  const named = asked.map((name) => name.trim()).filter((name) => name !== '')
  const strange = named.find((name) => !words.includes(name))
  if (strange !== undefined) {
    const meant = nearest(strange, words)
    const hint = meant === undefined ? '' : `; did you mean ${meant}?`
    return {
      ok: false,
      message: `tools must name sets of tools: ${setsInWords}; "${printable(strange)}" is not one of them${hint}`,
    }
  }
  const isListed = (operation: Operation): boolean =>
    named.includes('all') ||
    (operation.isEveryday === true && (named.length === 0 || named.includes('everyday'))) ||
    setsOf(operation).some((name) => named.includes(name))
  return { ok: true, tools: tools.filter(({ operation }) => operation === undefined || isListed(operation)) }
}
