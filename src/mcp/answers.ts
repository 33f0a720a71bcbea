/** Outcomes as tool results: `data` as structured content and a short text; a refusal is an error with the board's own body. */
import type { Outcome } from './calls.ts'

export type ToolResult = {
  readonly content: readonly { readonly type: 'text'; readonly text: string }[]
  readonly structuredContent?: Readonly<Record<string, unknown>>
  readonly isError?: true
}

/** Characters of the text: a model reads this, a program the structured content. */
const textMax = 6_000

/** What proves and what is long: of what is listed or shown beside something else it stands in the structured content alone. */
const leftOut: ReadonlySet<string> = new Set([
  'signature',
  'signed_payload',
  'delegation',
  'checkpoint',
  'command_sha256',
  'public_key',
  'votes',
  'generation',
  'log',
])

export function toolResult(outcome: Outcome): ToolResult {
  if (outcome === undefined) {
    const message =
      'the board gave no answer, and whether it took effect is unknown: call again with the same request_id'
    return { content: [{ type: 'text', text: message }], isError: true }
  }
  if (outcome.ok !== true) {
    const { code, message, retry_after } = outcome.error as { code: string; message: string; retry_after?: number }
    const wait = retry_after === undefined ? '' : ` (wait ${retry_after} s)`
    return {
      content: [{ type: 'text', text: `${code}: ${message}${wait}` }],
      structuredContent: outcome,
      isError: true,
    }
  }
  const data = outcome.data as Readonly<Record<string, unknown>>
  return { content: [{ type: 'text', text: shortText(data) }], structuredContent: data }
}

/** The data as compact JSON without proofs, cut where it grows long: what is short, a cursor among it, stands first. */
export function shortText(data: Readonly<Record<string, unknown>>): string {
  const isShort = ([, value]: readonly [string, unknown]) => typeof value !== 'object'
  const members = Object.entries(data)
  const ordered = [...members.filter(isShort), ...members.filter((member) => !isShort(member))]
  const shown: Readonly<Record<string, unknown>> = Object.fromEntries(ordered)
  const text = JSON.stringify(shown, function (this: unknown, name, value: unknown) {
    // The answer itself, and the one identity that was asked for, are shown whole.
    return leftOut.has(name) && this !== shown && this !== shown.identity ? undefined : value
  })
  if (text.length <= textMax) return text
  const cut = text.slice(0, textMax).replace(/[\ud800-\udbff]$/, '')
  return `${cut} … [cut here: structuredContent has all]`
}
