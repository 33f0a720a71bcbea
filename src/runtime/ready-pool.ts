/** Starts a pool whose threads have all loaded their modules before it can be used or ended. */
import type { Pool, StartPool } from './thread-pool.ts'

/**
 * Starts the pool and runs the exported function `question` once on each thread. Returns the pool and the answers. If a thread fails to
 * answer, ends the pool and rejects.
 */
export async function startReadyPool<Answer>(
  startPool: StartPool,
  question: string,
  ...[file, options]: Parameters<StartPool>
): Promise<{ readonly pool: Pool; readonly answers: readonly Answer[] }> {
  const pool = await startPool(file, options)
  const asked = Array.from({ length: options.threads }, () => pool.run<Answer>(question, undefined))
  try {
    // Ending a thread while it loads its modules can abort the process (V8: IsGraphAsync), so each one has to answer first.
    await Promise.allSettled(asked)
    return { pool, answers: await Promise.all(asked) }
  } catch (error) {
    await pool.end()
    throw error
  }
}
