/** Chooses the HTTP engine: uWebSockets.js where it has a binary for this platform, else `node:http`. */
import type { EngineChoice } from '../config.ts'
import { log } from '../observe.ts'
import { createNodeServer } from './node.ts'
import type { Handler, HttpOptions, HttpServer } from './port.ts'
import { createUwsServer, EngineMissing } from './uws.ts'

/** Throws EngineMissing when `uws` is requested by name and has no binary here. */
export async function createHttpServer(
  engine: EngineChoice,
  handler: Handler,
  options: HttpOptions,
): Promise<HttpServer> {
  if (engine === 'node') return createNodeServer(handler, options)
  try {
    return await createUwsServer(handler, options)
  } catch (error) {
    if (engine === 'uws' || !(error instanceof EngineMissing)) throw error
    log('warn', 'engine.fallback', { engine: 'node', problem: error.message })
    return createNodeServer(handler, options)
  }
}
