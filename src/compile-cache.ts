/** What V8 makes of built code is kept beside it, and each later start reads it in place of compiling the code again. */
import { constants, enableCompileCache } from 'node:module'
import { join } from 'node:path'
import { passOnCompileCache } from './environment.ts'
import { isBuilt, packageDirectory } from './program.ts'

/**
 * For this process and the threads it starts. Who installed the code for others may have left no right to write beside it: then it is
 * compiled each time. `NODE_COMPILE_CACHE` names another directory, and `NODE_DISABLE_COMPILE_CACHE=1` keeps nothing.
 */
export function keepCompiledCode(): void {
  // Sources change while they are worked on, and each version would stay.
  if (!isBuilt) return
  const { status, directory } = enableCompileCache(join(packageDirectory, 'dist', 'compiled'))
  if (status === constants.compileCacheStatus.ENABLED && directory !== undefined) passOnCompileCache(directory)
}
