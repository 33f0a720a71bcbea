/** Caches V8's compiled code next to the built code, so that later starts load it instead of compiling again. */
import { constants, enableCompileCache } from 'node:module'
import { join } from 'node:path'
import { shareCompileCache } from './environment.ts'
import { isBuilt, packageDirectory } from './program.ts'

/**
 * Applies to this process and the threads it starts. If an installation for several users is not writable, code is compiled at each start.
 * `NODE_COMPILE_CACHE` sets another directory, and `NODE_DISABLE_COMPILE_CACHE=1` disables the cache.
 */
export function cacheCompiledCode(): void {
  // Sources change during development, and every version would stay in the cache.
  if (!isBuilt) return
  const { status, directory } = enableCompileCache(join(packageDirectory, 'dist', 'compiled'))
  if (status === constants.compileCacheStatus.ENABLED && directory !== undefined) shareCompileCache(directory)
}
