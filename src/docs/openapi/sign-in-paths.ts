/**
 * The MCP endpoint, and the sign-in of its clients (RFC 8414, RFC 9728, RFC 7591, OAuth 2.1). What goes over them is the matter of
 * those standards: here stands where they are.
 */
import { Type } from '../../../actors/kernel/schema.ts'
import type { Json } from '../plain-schema.ts'
import { pathParameter } from './read-paths.ts'

const uid = pathParameter(
  'uid',
  Type.String({ pattern: '^[A-Za-z0-9_-]{1,64}$', description: 'names a sign-in under way' }),
)
const object: Json = { 'application/json': { schema: { type: 'object' } } }
const page: Json = { 'text/html': { schema: { type: 'string' } } }
const form: Json = { 'application/x-www-form-urlencoded': { schema: { type: 'object' } } }
const standards = 'As MCP, OAuth 2.1 and the RFCs that they name have it.'
const busy: Json = { '405': answer('Only GET, HEAD and OPTIONS are taken.', object) }
const wrong: Json = { '400': answer('The request is wrong.', object), '429': answer('Too many requests.', object) }

export const signInPaths: Json = {
  '/mcp': {
    get: described('mcpAbout', 'What this endpoint is, for people.', {
      '200': answer('A sentence.', { 'text/plain': { schema: { type: 'string' } } }),
      '403': answer('This Host or Origin is not allowed here.', object),
      '405': answer('No stream is opened by GET.', object),
    }),
    post: {
      ...described('mcp', 'A message of the Model Context Protocol (Streamable HTTP).', {
        '200': answer('The answer, as JSON or as events.', {
          ...object,
          'text/event-stream': { schema: { type: 'string' } },
        }),
        '202': answer('It was no request: nothing is answered.'),
        '400': answer('It is no message of the protocol.', object),
        '401': answer('It needs a sign-in: see WWW-Authenticate.', object),
        '403': answer('This Host, this Origin or this token is not enough.', object),
        '413': answer('The message is too long.', object),
        '429': answer('Too many requests: wait as Retry-After says.', object),
      }),
      requestBody: { required: true, content: object },
    },
  },
  '/.well-known/mcp/server.json': read('mcpServer', 'This endpoint as the MCP Registry describes one.'),
  '/.well-known/oauth-protected-resource': read('protectedResource', 'What protects the MCP endpoint (RFC 9728).'),
  '/.well-known/oauth-protected-resource/mcp': read(
    'protectedResourceOfMcp',
    'The same, where clients of its path look.',
  ),
  '/.well-known/oauth-authorization-server': read('authorizationServer', 'The authorization server (RFC 8414).'),
  '/.well-known/openid-configuration': read('openidConfiguration', 'The same, where other clients look.'),
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
    get: described('authorize', 'Begin a sign-in: a browser is sent here.', {
      '200': answer('A form that leads back, where the client asked for one.', page),
      '303': answer('On to the page of the sign-in, or back to the client.'),
      ...wrong,
    }),
  },
  '/oauth/authorize/{uid}': {
    get: {
      ...described('authorizeOn', 'Go on with it, once it was signed.', {
        '200': answer('A form that leads back, where the client asked for one.', page),
        '303': answer('Back to the client.'),
        ...wrong,
      }),
      parameters: [uid],
    },
  },
  '/oauth/interaction/{uid}': {
    get: {
      ...described('signInPage', 'The page of the sign-in, with what is to be signed.', {
        '200': answer('The page.', page),
        ...wrong,
      }),
      parameters: [uid],
    },
    post: {
      ...described('signIn', 'The signature, from that page or from a program.', {
        '200': answer('Where to go on.', object),
        '303': answer('On to the client.'),
        ...wrong,
      }),
      parameters: [uid],
      requestBody: { required: true, content: { ...object, ...form } },
    },
  },
  '/oauth/token': {
    post: {
      ...described('token', 'A token for a code, or for a refresh token.', {
        '200': answer('The tokens.', object),
        ...wrong,
      }),
      requestBody: { required: true, content: form },
    },
  },
  '/oauth/revoke': {
    post: {
      ...described('revokeToken', 'Give a token back (RFC 7009).', { '200': answer('It is over.'), ...wrong }),
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
