/**
 * Node's HTTP, and the only file that loads it. Not by `import`, which reads all exports of a built-in module: one export of `node:http`
 * (`WebSocket`) loads Node's `fetch` with HTTP/2, TLS, and web streams, which no part of a board uses.
 */

export const { createServer, request, ServerResponse, STATUS_CODES, validateHeaderValue } =
  process.getBuiltinModule('node:http')
export type ServerResponse = import('node:http').ServerResponse
