/**
 * Renders any answer of a board for people: events as posts, people by handle, times as dates, without the fields that only serve as proof.
 */
import { blockText } from '../follow/text-block.ts'
import { importedText } from '../format/imported.ts'
import { isObject } from '../mcp/brief.ts'
import { claimIn, eventBlock } from './event-text.ts'
import { inertLine, inertText, wordOf } from './terminal.ts'

type Fields = Readonly<Record<string, unknown>>

/** Fields that only prove what is next to them, or tell how to continue, which is shown elsewhere. */
const hiddenFields: ReadonlySet<string> = new Set([
  ...['signature', 'signed_payload', 'command_sha256', 'checkpoint', 'tree_size', 'delegation', 'public_key'],
  ...['next_cursor', 'has_more', 'generation', 'service_generation', 'service_id', 'requester_author'],
])
const timeName = /((^|_)at|_due|_until|^deadline|^last_seen|(^|_)since)$/

/** Renders an answer, or an item of one. */
export function answerText(answer: unknown): string {
  const item = isObject(answer) ? answer : { value: answer }
  if (isEvent(item)) return eventBlock(item)
  const { event, event_id: _, ...rest } = item
  const shown = isObject(event) && isEvent(event) ? event : undefined
  const lines = linesOf(shown === undefined ? item : rest, '')
  return `${shown === undefined ? '' : eventBlock(shown)}${lines.map((line) => `${line}\n`).join('')}\n`
}

function isEvent(item: Fields): boolean {
  return typeof item.event_id === 'string' && isObject(item.author) && typeof item.room === 'string'
}

function linesOf(fields: Fields, indent: string): string[] {
  const shown = Object.entries(fields).filter(([name, value]) => !hiddenFields.has(name) && value !== undefined)
  return shown.flatMap(([name, value]): string[] => {
    const label = `${indent}${inertLine(name.replaceAll('_', ' '))}`
    if (name === 'receipt' && isObject(value)) return receiptLines(value, indent)
    const claim = name === 'source' ? claimIn(value) : undefined
    if (claim !== undefined) return [`${indent}${inertLine(importedText(claim))}`]
    const word = wordFor(name, value)
    if (word !== undefined) return [`${label}: ${word}`]
    if (typeof value === 'string') return [`${label}:`, ...blockText(inertText(value)).split('\n')]
    if (Array.isArray(value)) return listLines(label, value, indent)
    return isObject(value) ? [`${label}:`, ...linesOf(value, `${indent}  `)] : [`${label}: ${inertLine(wordOf(value))}`]
  })
}

function receiptLines({ log_index, duplicate }: Fields, indent: string): string[] {
  const place = log_index === undefined ? [] : [`${indent}in log: leaf ${inertLine(wordOf(log_index))}`]
  return duplicate === true ? [...place, `${indent}this was already done, and nothing was done again`] : place
}

function listLines(label: string, values: readonly unknown[], indent: string): string[] {
  if (values.length === 0) return [`${label}: none`]
  if (!values.some((value) => isObject(value) && wordFor('', value) === undefined))
    return [`${label}: ${values.map((value) => wordFor('', value) ?? inertLine(wordOf(value))).join(', ')}`]
  return [
    `${label}:`,
    ...values.flatMap((value) => {
      const [first = '', ...more] = linesOf(isObject(value) ? value : { value }, `${indent}    `)
      return [`${indent}  - ${first.trimStart()}`, ...more]
    }),
  ]
}

/** The value as one word or line; undefined if it takes more. */
function wordFor(name: string, value: unknown): string | undefined {
  if (typeof value === 'number' && timeName.test(name) && value > 0 && value <= 8.64e12)
    return new Date(value * 1000).toISOString().replace('.000Z', 'Z')
  if (typeof value === 'string') return value.includes('\n') ? undefined : inertLine(value)
  if (typeof value !== 'object' || value === null) return inertLine(wordOf(value))
  const { id, handle, ...rest } = value as Fields
  const isPerson = typeof id === 'string' && Object.keys(rest).every((key) => key === 'public_key')
  return isPerson ? inertLine(typeof handle === 'string' ? `@${handle}` : id) : undefined
}
