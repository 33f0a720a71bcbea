/** The protocol of /v1/stream apart from its operations: its path, and why a connection is closed. */
import { sizes } from '../kernel/limits.ts'

export const streamPath = '/v1/stream'

/** Codes of the close frame and their meanings. The engine also sends 1002 (a malformed frame) and 1007 (text that is not UTF-8). */
export const closeCodes = {
  1001: 'the board is stopping; every answer was sent before: connect again and resume each follow with its last cursor',
  1003: 'a binary message was sent: only text is accepted',
  1008: 'too many pings were sent',
  1009: `a message had more than ${sizes.stream_message_bytes} bytes`,
  1011: 'the outcome of a command is unknown: connect again and send the same bytes again',
  4008: `more than ${sizes.batch_lines} messages, or ${sizes.body_bytes} bytes of them, had no answer yet; or nothing was read for 15 seconds`,
  4009: 'nothing was received for a minute, not even a pong',
} as const

export type CloseCode = keyof typeof closeCodes
