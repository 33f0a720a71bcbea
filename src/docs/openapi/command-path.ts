/** POST /v1/command: every operation at one path, with an example of each. */

import { isSigned, type Operation } from '../../../actors/kernel/operation.ts'
import { operations } from '../../../actors/operations.ts'
import type { Json, Shapes } from '../../format/plain-schema.ts'
import { refusalsOf } from '../capabilities.ts'
import { anyCommand, commandOf, resultOf } from '../command-shapes.ts'
import { signedExample } from '../signing-examples.ts'
import { refused, success } from './responses.ts'

/** `shapes`: components; `own`: where the shapes of single commands and their answers go, which no path names. */
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

/** What must be signed is shown as it is sent: with a signature that fits, though its time has passed. */
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
