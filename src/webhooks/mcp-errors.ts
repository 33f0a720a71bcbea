/**
 * Errors of MCP Events. The protocol's documents disagree on the numbers: the design sketch, which installed clients follow,
 * has one set, the draft of SEP-3415 another. This one word switches all of them; `message` and `data` are the same in both.
 */
const numbering: 'sketch' | 'sep' = 'sketch'

const numbers = {
  sketch: { notFound: -32011, forbidden: -32012, exhausted: -32013, unsupported: -32014, callback: -32015 },
  sep: { notFound: -32023, forbidden: -32024, exhausted: -32025, unsupported: -32026, callback: -32027 },
}[numbering]

export const eventErrors = {
  invalidParams: { code: -32602, message: 'InvalidParams' },
  notFound: { code: numbers.notFound, message: 'NotFound' },
  forbidden: { code: numbers.forbidden, message: 'Forbidden' },
  exhausted: { code: numbers.exhausted, message: 'ResourceExhausted' },
  unsupported: { code: numbers.unsupported, message: 'Unsupported' },
  callback: { code: numbers.callback, message: 'CallbackEndpointError' },
} as const

type EventErrorName = keyof typeof eventErrors

/** Thrown by the handlers of mcp-events.ts: `code`, `message` and `data` are copied to the answer unchanged. */
export class McpEventError extends Error {
  override name = 'McpEventError'
  readonly code: number
  readonly data: Readonly<Record<string, unknown>>

  constructor(name: EventErrorName, data: Readonly<Record<string, unknown>>) {
    super(eventErrors[name].message)
    this.code = eventErrors[name].code
    this.data = data
  }
}
