/** POST /v1/command: every operation at one path, with an example of each; and /v1/commands, many commands in one request. */

import { sizes } from '../../../actors/kernel/limits.ts'
import { isSigned, type Operation } from '../../../actors/kernel/operation.ts'
import { operations } from '../../../actors/operations.ts'
import type { Json, Shapes } from '../../format/plain-schema.ts'
import { refusalsOf } from '../capabilities.ts'
import { anyCommand, commandOf, resultOf } from '../command-shapes.ts'
import { signedExample } from '../signing-examples.ts'
import { refused, success } from './responses.ts'

/** `shapes`: components; `own`: receives the shapes of single commands and their answers, which no path refers to. */
export function commandPath(serviceId: string, shapes: Shapes, own: Shapes): Json {
  const command = anyCommand(shapes)
  const described = operations.map((operation) => ({
    operation,
    request: commandOf(operation, own),
    result: resultOf(operation, own),
  }))
  const result = {
    type: 'object',
    description: 'the answer of the operation, in its own shape, such as PostResult under x-shapes',
  }
  return {
    post: {
      operationId: 'command',
      tags: ['command'],
      summary: 'Run one command.',
      description: [
        'A command names its operation and that operation’s fields, nothing else. A write must be signed, and so must a',
        'read of your own data; a read of public data may be unsigned. Sending exactly the same signed command again is safe: it has no second',
        'effect and returns the same outcome, with `receipt.duplicate`.',
        '',
        'The shapes of each command and answer are under `x-shapes` in this document; `x-operations` refers to them.',
        '',
        '| operation | what it does | command | answer |',
        '| --- | --- | --- | --- |',
        ...described.map(({ operation: { name, summary }, request, result: answer }) =>
          ['', code(name), summary, code(nameIn(request)), code(nameIn(answer)), ''].join(' | ').trim(),
        ),
      ].join('\n'),
      requestBody: {
        required: true,
        description: 'The command, in UTF-8.',
        content: {
          'application/json': {
            schema: command,
            examples: Object.fromEntries(operations.map((each) => [each.name, example(serviceId, each)])),
          },
        },
      },
      responses: { '200': success('The result of the operation.', result), ...refused },
      'x-operations': Object.fromEntries(
        described.map(({ operation, request, result: answer }) => [
          operation.name,
          {
            kind: operation.kind,
            who: operation.who,
            ...(operation.scope === undefined ? {} : { scope: operation.scope }),
            request,
            result: answer,
            refusals: refusalsOf(operation),
          },
        ]),
      ),
    },
  }
}

/** POST /v1/commands: one command per line, one answer per line. */
export const commandsPath: Json = {
  post: {
    operationId: 'commands',
    tags: ['command'],
    summary: 'Run many commands, one a line.',
    description: [
      `At most ${sizes.batch_lines} lines of JSON (NDJSON), ${sizes.body_bytes} bytes together. Each line is a command as at`,
      '`POST /v1/command`, with the same rules, limits and answers. Empty lines are skipped.',
      '',
      'Each answer is a line `{"line","status","ok",…}` with the number of its command from 1 and the status that the command',
      'alone would have. Answers come as soon as they are known, in any order. A refused line has no effect on the others; if',
      'a limit refused it, `error.retry_after` says when to send it again.',
      '',
      'Posts to one room, and other commands that one actor decides, are decided in line order. A line may name the id of what',
      'an earlier line makes; it and every read wait for the answers they need. Any other line that depends on an earlier one',
      '(on a handle that is registered there, or on a step of the same work) must be sent after its answer.',
      '',
      'If the connection ends early, accepted lines stay accepted. Sending the same bytes again is safe.',
    ].join('\n'),
    requestBody: {
      required: true,
      description: 'The commands, in UTF-8, each line ended by a line feed.',
      content: { 'application/x-ndjson': { schema: { type: 'string' } } },
    },
    responses: {
      '200': {
        description: 'The answers.',
        content: {
          'application/x-ndjson': {
            schema: { type: 'string' },
            example: '{"line":1,"status":200,"ok":true,"data":{}}\n',
          },
        },
      },
      ...refused,
    },
  },
}

/** Commands that must be signed are shown as sent: with a valid signature, although its time has passed. */
function example(serviceId: string, operation: Operation): Json {
  const { name, summary, example: fields } = operation
  const value = isSigned(operation) ? signedExample(serviceId, { ...fields, nonce: `example-${name}` }) : fields
  return { summary, value }
}

function code(text: string): string {
  return `\`${text}\``
}

function nameIn(reference: Json): string {
  return String(reference.$ref).split('/').at(-1)!
}
