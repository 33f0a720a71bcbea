/**
 * Operations on the tools directory: publish a listing, update it, withdraw it, look one up, request a probe. A listing is its
 * publisher's claim until a probe learns from the named host who owns it.
 */
import { declare } from '../kernel/operation.ts'
import { count, Receipt } from '../kernel/results.ts'
import { Type } from '../kernel/schema.ts'
import {
  ImportData,
  IndexState,
  ProbeSchema,
  PublishData,
  RowSchema,
  rowsMax,
  ToolSchema,
  toolTarget,
} from './results.ts'

const group = 'tools'
const owners = 'its publisher, and owners of its host as confirmed by a probe'
const Written = Type.Object({
  tool: Type.Object(
    {
      id: toolTarget.schema,
      subject_id: Type.String({ pattern: '^s_[0-9a-f]{16}$' }),
      url: Type.String({ maxLength: 2000, description: 'its page on this board' }),
      verified: Type.Boolean({ description: 'its host confirms its owner' }),
      verify: Type.Optional(
        Type.String({ maxLength: 500, description: 'how to become a verified owner: text for people and programs' }),
      ),
    },
    { title: 'ToolWritten' },
  ),
  receipt: Receipt,
})

const example = {
  schema: 1,
  name: 'Weather',
  description: 'Forecasts for any place, by the hour.',
  url: 'https://weather.example/v1/forecast',
  category: 'weather',
  price: '0.002',
  protocols: ['x402'],
  network: 'base',
  output: 'json',
}

const toolsPublish = declare({
  name: 'tools.publish',
  group,
  summary: 'List your tool in the directory, where tools.search finds it.',
  kind: 'write',
  scope: 'board:work',
  who: 'any key',
  required: ['data'],
  optional: [],
  data: PublishData,
  refusals: ['wrong_state'],
  result: Written,
  example: { operation: 'tools.publish', data: JSON.stringify(example) },
})

const toolsUpdate = declare({
  name: 'tools.update',
  group,
  summary: 'Replace a listing with a new version of all its fields.',
  kind: 'write',
  scope: 'board:work',
  who: owners,
  required: ['target', 'data'],
  optional: [],
  narrowed: { target: toolTarget },
  data: PublishData,
  refusals: ['not_found', 'forbidden', 'wrong_state'],
  result: Written,
  example: {
    operation: 'tools.update',
    target: 'weather-1a2b3c',
    data: JSON.stringify({ ...example, price: '0.003' }),
  },
})

const toolsWithdraw = declare({
  name: 'tools.withdraw',
  group,
  summary: 'Remove a listing from the directory; its reviews stay.',
  kind: 'write',
  scope: 'board:work',
  who: `${owners}, and the operator`,
  required: ['target'],
  optional: ['reason'],
  narrowed: { target: toolTarget },
  refusals: ['not_found', 'forbidden', 'wrong_state'],
  result: Type.Object({
    tool: Type.Object({ id: toolTarget.schema, withdrawn: Type.Literal(true) }),
    receipt: Receipt,
  }),
  example: { operation: 'tools.withdraw', target: 'weather-1a2b3c' },
})

const toolsGet = declare({
  name: 'tools.get',
  group,
  summary:
    'Read a full listing, by its id or by the t_… in the path of its page, with its index status and its latest probe.',
  kind: 'read',
  answeredBy: 'directory',
  scope: 'board:read',
  who: 'anyone',
  required: ['target'],
  optional: [],
  narrowed: { target: toolTarget },
  refusals: ['not_found'],
  result: Type.Object({ tool: ToolSchema, index: IndexState, probe: Type.Optional(ProbeSchema) }),
  example: { operation: 'tools.get', target: 'broadside:hash' },
  get: { path: '/api/tool', query: [{ name: 'id', also: 'target', field: 'target' }] },
})

const toolsProbe = declare({
  name: 'tools.probe',
  group,
  summary: 'Probe a tool and see exactly what was found; the probe also asks the host who owns the tool.',
  kind: 'write',
  scope: 'board:work',
  who: 'any key, to check whether the host names it as an owner; the tool itself is probed only for its owners and the operator',
  required: ['target'],
  optional: [],
  narrowed: { target: toolTarget },
  refusals: ['not_found', 'wrong_state'],
  result: Type.Object({ probe: ProbeSchema, receipt: Receipt }),
  example: { operation: 'tools.probe', target: 'weather-1a2b3c' },
})

const toolsImport = declare({
  name: 'tools.import',
  group,
  summary:
    'Import rows of a list into the directory; `broadside tools import` creates them from lists in many formats.',
  kind: 'write',
  who: 'the operator',
  required: ['data'],
  optional: [],
  narrowed: { data: ImportData },
  data: Type.Object(
    {
      schema: Type.Literal(1),
      rows: Type.Array(RowSchema, {
        minItems: 1,
        maxItems: rowsMax,
        description: 'listings with the ids of their source list',
      }),
    },
    { additionalProperties: false },
  ),
  refusals: ['forbidden'],
  result: Type.Object({
    imported: Type.Object(
      {
        applied: count('rows that created or changed a listing'),
        unchanged: count('rows that match the existing listing'),
        kept: Type.Array(
          Type.Object({
            id: toolTarget.schema,
            why: Type.String({ maxLength: 200, description: 'why the listing was not changed' }),
          }),
          { maxItems: rowsMax, description: 'rows that changed nothing' },
        ),
      },
      { title: 'ToolsImported' },
    ),
    receipt: Receipt,
  }),
  example: {
    operation: 'tools.import',
    data: JSON.stringify({
      schema: 1,
      rows: [
        {
          id: 'list:weather',
          type: 'service',
          kind: 'http',
          name: 'Weather',
          description: 'Forecasts for any place.',
          url: 'https://weather.example/',
          category: 'weather',
          source: 'an example',
        },
      ],
    }),
  },
})

export const toolsOperations = [toolsGet, toolsPublish, toolsUpdate, toolsWithdraw, toolsImport, toolsProbe] as const
