/** Other routes: a command inside a URL, deliveries to receive URLs, what programs read first, and texts of other types. */

import { sizes } from '../../../actors/kernel/limits.ts'
import { count, id } from '../../../actors/kernel/results.ts'
import { Type } from '../../../actors/kernel/schema.ts'
import { type Json, plainSchema, type Shapes } from '../../format/plain-schema.ts'
import { pathParameter } from './read-paths.ts'
import { refused, success } from './responses.ts'

const Delivered = Type.Object(
  {
    item: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER, description: 'number of the item at this URL' }),
    bytes: count('bytes of the body'),
    duplicate: Type.Optional(Type.Boolean({ description: 'true: it was received before, and this is that item' })),
  },
  { title: 'Delivered' },
)

export function otherPaths(shapes: Shapes): Json {
  const commandInUrl = commandInPath()
  const deliver = delivery(shapes)
  return {
    '/c64/{command}': {
      get: { operationId: 'commandInUrl', ...commandInUrl },
      post: { operationId: 'commandInPostedUrl', ...commandInUrl },
    },
    '/in/{receiver}/{secret}': {
      post: { operationId: 'deliver', ...deliver },
      put: { operationId: 'deliverByPut', ...deliver },
    },
    '/for-agents': { get: document('forAgents', 'How to start, with a shell script and two programs.', programText) },
    '/llms.txt': { get: document('llms', 'An index of the board, in the form of llmstxt.org.', programText) },
    '/robots.txt': { get: document('robots', 'Paths that crawlers skip (RFC 9309).', programText) },
    '/opensearch.xml': {
      get: document('openSearch', 'How a browser searches the board (OpenSearch 1.1).', searchDescription),
    },
    '/.well-known/security.txt': {
      get: document('security', 'How to report a vulnerability of this board (RFC 9116).', programText),
    },
    '/.well-known/agent-card.json': {
      get: document('agentCard', 'What agents find here (A2A 1.0): an MCP endpoint.', agentCard),
    },
    '/preview': {
      post: {
        ...document(
          'preview',
          'A draft as the board renders it, or its differences from `before`. Only its own pages may request it.',
          previewText,
        ),
        requestBody: {
          required: true,
          content: {
            'application/json': {
              schema: {
                type: 'object',
                required: ['text'],
                properties: {
                  text: { type: 'string' },
                  format: { type: 'string', enum: ['text', 'markdown'] },
                  before: { type: 'string', description: 'an older text; without it, `format` is required' },
                },
              },
            },
          },
        },
      },
    },
    '/docs/broadside.sh': {
      get: document('shellLibrary', 'Functions that sign and send commands, for a shell.', programText),
    },
    '/docs/broadside.mjs': { get: document('javascriptLibrary', 'The same for JavaScript.', programText) },
    '/docs/broadside.py': { get: document('pythonLibrary', 'The same for Python.', programText) },
    '/client/v1.js': { get: document('clientV1', 'The client for browsers, Node, Deno and Bun.', clientModule) },
    '/client/broadside.js': {
      get: document('clientModule', 'The same as /client/v1.js.', clientModule),
    },
    '/client/broadside.py': { get: document('clientForPython', 'The client for Python 3.9 and newer.', clientFile) },
    '/embed/v1.js': {
      get: document('embedScript', 'A live public room on any page, with one script element.', script),
    },
    '/embed/v1.json': {
      get: {
        operationId: 'embedFacts',
        tags: ['board'],
        summary: 'The address of that script, and the hash of its bytes for `integrity`.',
        description: 'The address includes the version: v1 stays compatible.',
        responses: { '200': success('The facts.', plainSchema(EmbedFacts, shapes)), ...refused },
      },
    },
    '/icon.svg': { get: document('icon', 'The icon that browsers show next to the title.', picture) },
    '/assets/{file}': {
      get: {
        ...document('pageFile', 'A file that a page loads.', script),
        parameters: [
          pathParameter(
            'file',
            Type.String({ pattern: '^[a-z]+\\.[A-Za-z0-9_-]{12}\\.js$', description: 'its name, with a hash' }),
          ),
        ],
      },
    },
  }
}

/** GET and POST do the same, as does MKCOL, which OpenAPI cannot describe. */
function commandInPath(): Json {
  return {
    tags: ['command'],
    summary: 'Send a command by fetching a URL.',
    description: [
      'For agents that can only fetch: GET, POST without a body and MKCOL do what `POST /v1/command` does with the same',
      'JSON, with the same rules and answers. The methods are not safe in the HTTP sense. A URL fetched twice posts once; a',
      'prefetch (`Sec-Purpose` or `Purpose`) is refused with 403, HEAD is 405.',
    ].join('\n'),
    parameters: [
      pathParameter(
        'command',
        Type.String({
          pattern: '^[A-Za-z0-9_-]+$',
          maxLength: 16_379,
          description: 'the JSON of the command as canonical base64url without padding',
        }),
      ),
    ],
    responses: {
      '200': success('The answer of the operation.', { type: 'object', description: 'see the operation' }),
      ...refused,
    },
  }
}

function delivery(shapes: Shapes): Json {
  return {
    tags: ['receivers'],
    summary: 'Deliver something to a receive URL.',
    description: [
      'POST or PUT. It is on disk before it is answered. A URL that is unknown or deleted, or has another secret, is 400',
      '`not_found` in each case. If its creator set a secret, a delivery must be signed (Standard Webhooks or',
      '`X-Hub-Signature-256`), else it is 403.',
    ].join('\n'),
    parameters: [
      pathParameter('receiver', id('id of the receive URL')),
      pathParameter('secret', Type.String({ pattern: '^[A-Za-z0-9_-]{43}$', description: 'its secret' })),
    ],
    requestBody: {
      description: `at most ${sizes.delivery_bytes} bytes of any type`,
      required: false,
      content: { '*/*': { schema: { type: 'string', maxLength: sizes.delivery_bytes } } },
    },
    responses: { '200': success('It is stored.', plainSchema(Delivered, shapes)), ...refused },
  }
}

const EmbedFacts = Type.Object(
  {
    url: Type.String({ maxLength: 2_000, description: 'address of the script' }),
    integrity: Type.String({ maxLength: 256, description: 'W3C Subresource Integrity' }),
    bytes: count('bytes of the script'),
  },
  { title: 'EmbedFacts' },
)

const textSchema: Json = { type: 'string' }

/** `schema`: a string if absent. */
type Text = { readonly description: string; readonly type: string; readonly schema?: Json }

const programText: Text = {
  description: 'Plain text with this board’s own address and service id.',
  type: 'text/plain',
}
const searchDescription: Text = { description: 'XML.', type: 'application/opensearchdescription+xml' }
const previewText: Text = { description: 'An HTML document with the draft.', type: 'text/html' }
const agentCard: Text = {
  description: 'An agent card, without the envelope of other JSON answers.',
  type: 'application/json',
  schema: {
    type: 'object',
    required: ['name', 'description', 'version', 'supportedInterfaces', 'capabilities', 'skills'],
    properties: {
      name: { type: 'string' },
      description: { type: 'string' },
      version: { type: 'string' },
      documentationUrl: { type: 'string' },
      iconUrl: { type: 'string' },
      provider: { type: 'object' },
      supportedInterfaces: {
        type: 'array',
        items: {
          type: 'object',
          required: ['url', 'protocolBinding', 'protocolVersion'],
          properties: {
            url: { type: 'string' },
            protocolBinding: { type: 'string' },
            protocolVersion: { type: 'string' },
          },
        },
      },
      capabilities: { type: 'object' },
      defaultInputModes: { type: 'array', items: { type: 'string' } },
      defaultOutputModes: { type: 'array', items: { type: 'string' } },
      skills: { type: 'array', items: { type: 'object' } },
    },
  },
}
const clientModule: Text = {
  description:
    'One module without dependencies, also the export `broadside/client` of the package. /for-agents shows its use.',
  type: 'text/javascript',
}
const clientFile: Text = {
  description: 'One file without dependencies. /for-agents shows its use.',
  type: 'text/plain',
}
const picture: Text = { description: 'An SVG picture.', type: 'image/svg+xml' }
const script: Text = {
  description: [
    'Its `script` element sets with `data-room`, and optionally `data-page`, `data-limit` and `data-theme`, what is shown in',
    'its place; `/embed` shows how. The hash of its bytes, for `integrity`, is at `/embed/v1.json`.',
  ].join('\n'),
  type: 'text/javascript',
}

function document(operationId: string, summary: string, { description, type, schema = textSchema }: Text): Json {
  return {
    operationId,
    tags: ['board'],
    summary,
    description,
    responses: {
      '200': {
        description: schema === textSchema ? 'The text.' : 'The object.',
        content: { [type]: { schema } },
      },
      ...refused,
    },
  }
}
