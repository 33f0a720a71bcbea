/**
 * The MCP endpoint, and the sign-in of its clients (RFC 8414, RFC 9728, RFC 7591, OAuth 2.1). Those standards define the content; this
 * gives the locations.
 */
import { Type } from '../../../actors/kernel/schema.ts'
import type { Json } from '../../format/plain-schema.ts'
import { pathParameter } from './read-paths.ts'

const uid = pathParameter(
  'uid',
  Type.String({ pattern: '^[A-Za-z0-9_-]{1,64}$', description: 'identifies a sign-in in progress' }),
)
const object: Json = { 'application/json': { schema: { type: 'object' } } }
const page: Json = { 'text/html': { schema: { type: 'string' } } }
const form: Json = { 'application/x-www-form-urlencoded': { schema: { type: 'object' } } }
const standards = 'As specified by MCP, OAuth 2.1 and the RFCs that they reference.'
const busy: Json = { '405': answer('Only GET, HEAD and OPTIONS are supported.', object) }
const wrong: Json = { '400': answer('The request is invalid.', object), '429': answer('Too many requests.', object) }

export const signInPaths: Json = {
  '/mcp': {
    get: described('mcpAbout', 'A description of this endpoint, for people.', {
      '200': answer('A sentence.', { 'text/plain': { schema: { type: 'string' } } }),
      '403': answer('This Host or Origin is not allowed here.', object),
      '405': answer('GET does not open a stream.', object),
    }),
    post: {
      ...described('mcp', 'A message of the Model Context Protocol (Streamable HTTP).', {
        '200': answer('The answer, as JSON or as events.', {
          ...object,
          'text/event-stream': { schema: { type: 'string' } },
        }),
        '202': answer('It was not a request: there is no response.'),
        '400': answer('It is not a protocol message.', object),
        '401': answer('A sign-in is required: see WWW-Authenticate.', object),
        '403': answer('This Host or Origin is not allowed, or the token is insufficient.', object),
        '413': answer('The message is too long.', object),
        '429': answer('Too many requests: wait for Retry-After.', object),
      }),
      requestBody: { required: true, content: object },
    },
  },
  '/.well-known/mcp/server.json': read('mcpServer', 'This endpoint in the format of the MCP Registry.'),
  '/.well-known/oauth-protected-resource': read(
    'protectedResource',
    'Metadata of the protected MCP endpoint (RFC 9728).',
  ),
  '/.well-known/oauth-protected-resource/mcp': read(
    'protectedResourceOfMcp',
    'The same, at the path-specific address.',
  ),
  '/.well-known/oauth-authorization-server': read('authorizationServer', 'The authorization server (RFC 8414).'),
  '/.well-known/openid-configuration': read('openidConfiguration', 'The same, at the OpenID Connect address.'),
  '/oauth/jwks': read('signInKeys', 'Keys of the authorization server.'),
  '/oauth/register': {
    post: {
      ...described('registerClient', 'Register a client (RFC 7591).', {
        '201': answer('The client.', object),
        ...wrong,
      }),
      requestBody: { required: true, content: object },
    },
  },
  '/oauth/authorize': {
    get: described('authorize', 'Start a sign-in: the browser is redirected here.', {
      '200': answer('A form that returns to the client, if the client requested one.', page),
      '303': answer('Redirect to the sign-in page, or back to the client.'),
      ...wrong,
    }),
  },
  '/oauth/authorize/{uid}': {
    get: {
      ...described('authorizeOn', 'Continue the sign-in after it was signed.', {
        '200': answer('A form that returns to the client, if the client requested one.', page),
        '303': answer('Redirect to the client.'),
        ...wrong,
      }),
      parameters: [uid],
    },
  },
  '/oauth/interaction/{uid}': {
    get: {
      ...described('signInPage', 'The sign-in page, with the bytes to sign.', {
        '200': answer('The page.', page),
        ...wrong,
      }),
      parameters: [uid],
    },
    post: {
      ...described('signIn', 'The signature, from that page or from a program.', {
        '200': answer('The next location.', object),
        '303': answer('Redirect to the client.'),
        ...wrong,
      }),
      parameters: [uid],
      requestBody: { required: true, content: { ...object, ...form } },
    },
  },
  '/oauth/token': {
    post: {
      ...described('token', 'Exchange a code or a refresh token for a token.', {
        '200': answer('The tokens.', object),
        ...wrong,
      }),
      requestBody: { required: true, content: form },
    },
  },
  '/oauth/revoke': {
    post: {
      ...described('revokeToken', 'Revoke a token (RFC 7009).', { '200': answer('It is revoked.'), ...wrong }),
      requestBody: { required: true, content: form },
    },
  },
  '/oauth/sign-in-page.js': {
    get: described('signInScript', 'The script of the sign-in page.', {
      '200': answer('The script.', { 'text/javascript': { schema: { type: 'string' } } }),
      ...busy,
    }),
  },
}

function described(operationId: string, summary: string, responses: Json): Json {
  return { operationId, tags: ['mcp'], summary, description: standards, responses }
}

function read(operationId: string, summary: string): Json {
  return { get: described(operationId, summary, { '200': answer('The document.', object), ...busy }) }
}

function answer(description: string, content?: Json): Json {
  return { description, ...(content === undefined ? {} : { content }) }
}
