/** Describes `/pay/tools/{id}`, where the board sells its own tools. Included only if the board sells them. */

import { sizes } from '../../actors/kernel/limits.ts'
import { Type } from '../../actors/kernel/schema.ts'
import type { Sold } from '../docs/capabilities.ts'
import { pathParameter } from '../docs/openapi/read-paths.ts'
import { refused } from '../docs/openapi/responses.ts'
import type { Json } from '../format/plain-schema.ts'
import { priceOf } from '../money/price.ts'
import { ownTools } from '../own-tools/descriptors.ts'

export function payPaths({ micros, network }: Sold): Json {
  const price = `${priceOf(micros)} dollars of USDC per call, on ${network}`
  const shared = {
    tags: ['tools'],
    description: [
      `${price}. Without a payment, or with one that is not valid, the answer is 402 and offers every protocol: x402 v2 in`,
      '`PAYMENT-REQUIRED`, x402 v1 in `accepts` of the body and MPP `evm/charge` in `WWW-Authenticate`. Send the payment with the',
      'same request, in `PAYMENT-SIGNATURE`, in `X-PAYMENT` or as `Authorization: Payment …`. It is verified, the tool runs,',
      'then it is settled: you do not',
      'pay for invalid input. One payment buys one call; the same payment again gets the same answer.',
      'The same tools are free with the operation `tools.call`.',
    ].join('\n'),
    responses: {
      '200': {
        description: 'The output of the tool, paid for.',
        headers: {
          'PAYMENT-RESPONSE': header('x402: base64 of JSON'),
          'X-PAYMENT-RESPONSE': header('x402 v1: base64 of JSON'),
          'Payment-Receipt': header('MPP: base64url of JSON'),
        },
        content: { 'application/json': { schema: { type: 'object', description: 'see the page of the tool' } } },
      },
      ...refused,
      '402': problem(
        'Payment is required, or this payment is invalid.',
        {
          'PAYMENT-REQUIRED': header('x402: base64 of JSON, with `accepts`'),
          'WWW-Authenticate': header('MPP: a challenge, `Payment id="…", realm="…", method="evm", …`'),
        },
        {
          x402Version: { type: 'integer', const: 1 },
          error: { type: 'string', description: 'x402 v1: the same as detail' },
          accepts: { type: 'array', items: { type: 'object' }, description: 'x402 v1: ways to pay' },
        },
      ),
      '503': problem('The status of the payment is still unknown, or the tool is busy: send the same again.', {}),
    },
  }
  const id = pathParameter('id', Type.String({ enum: ownTools.map((tool) => tool.id), description: 'id of the tool' }))
  const payment = (name: string, protocol: string): Json => ({
    name,
    in: 'header',
    description: `${protocol}: the payment, base64 of JSON; if absent, the answer requests it`,
    schema: { type: 'string' },
  })
  const payments = [payment('PAYMENT-SIGNATURE', 'x402'), payment('X-PAYMENT', 'x402 v1')]
  return {
    '/pay/tools/{id}': {
      get: {
        operationId: 'buyToolByQuery',
        summary: 'Pay for a call to a tool of this board, with its input in the query.',
        ...shared,
        parameters: [
          id,
          ...payments,
          {
            name: 'input',
            in: 'query',
            description: 'the input of the tool, a parameter for each of its fields',
            style: 'form',
            explode: true,
            schema: { type: 'object', additionalProperties: { type: 'string' } },
          },
        ],
      },
      post: {
        operationId: 'buyTool',
        summary: 'Pay for a call to a tool of this board, with its input as JSON.',
        ...shared,
        parameters: [id, ...payments],
        requestBody: {
          description: `the input of the tool, at most ${sizes.data_bytes} bytes`,
          required: true,
          content: { 'application/json': { schema: { type: 'object' } } },
        },
      },
    },
  }
}

function header(description: string): Json {
  return { description, schema: { type: 'string' } }
}

function problem(description: string, headers: Json, more: Json = {}): Json {
  const fields = {
    type: { type: 'string' },
    title: { type: 'string' },
    status: { type: 'integer' },
    detail: { type: 'string' },
  }
  const schema = {
    type: 'object',
    required: [...Object.keys(fields), ...Object.keys(more)],
    properties: { ...fields, ...more },
  }
  return { description, headers, content: { 'application/problem+json': { schema } } }
}
