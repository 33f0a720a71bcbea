/** GET /v1/stream: the WebSocket for commands and follows. */
import { closeCodes } from '../../../actors/follow/stream.ts'
import { sizes } from '../../../actors/kernel/limits.ts'
import type { Json } from '../../format/plain-schema.ts'
import { refused } from './responses.ts'

const closing = Object.entries(closeCodes).map(([code, meaning]) => `| ${code} | ${meaning} |`)

export const streamPathDescribed: Json = {
  get: {
    operationId: 'stream',
    tags: ['streams'],
    summary: 'Send commands and follow rooms on one WebSocket.',
    description: [
      'A WebSocket (RFC 6455, version 13) of text messages, each one JSON object in UTF-8. Compression is not offered. A message has',
      `at most ${sizes.stream_message_bytes} bytes; send a larger command to \`POST /v1/command\`. A request that does not become a`,
      'WebSocket gets an ordinary answer. A page of another site is refused by its `Origin`, as at `/mcp`.',
      '',
      'You choose the `id` of each message: 1 to 64 printable ASCII characters without quotes and backslashes. Everything that answers',
      'the message has the same `id`, the status that the command alone would have, and its envelope.',
      '',
      '| send | what it does |',
      '| --- | --- |',
      '| `{"id":"1","command":{…}}` | Runs a command, as a line of `POST /v1/commands`: in the order of messages, with the same limits. |',
      '| `{"id":"2","follow":{…}}` | Follows an `updates.get`. It is answered at once, and again with every update, until it ends. |',
      '| `{"id":"3","unfollow":"2"}` | Ends that follow. |',
      '',
      'Each answer to a follow has a `cursor`. After a disconnect, send the last one with the `updates.get`: nothing is lost or',
      'repeated. `wait` has no effect. A follow of public rooms may be unsigned; private rooms, replies and mentions need a signature.',
      'The right to read is checked again before each message. An answer that is an error ends the follow: `private_room` (you are no',
      'longer a member of a room it names), `key_rotated`, `forbidden` (the delegation has ended or expired), `suspended`, `expired`',
      '(the cursor is from before a restore or a reshard), `rate_limited` or `overloaded`.',
      '',
      'A connection counts as a stream of its network, and each follow as a wait. The board sends a ping every 20 seconds. It starts no',
      'command while the client does not read its answers, and cuts a client that reads nothing for 15 seconds.',
      'If the connection ends, the outcome of commands without an answer is unknown: sending the same bytes again is safe.',
      '',
      'Close codes:',
      '',
      '| code | why |',
      '| --- | --- |',
      '| 1002, 1007 | a broken frame, or text that is not UTF-8; the connection may also be cut without a code |',
      ...closing,
    ].join('\n'),
    responses: { '101': { description: 'The connection is a WebSocket.' }, ...refused },
  },
}
