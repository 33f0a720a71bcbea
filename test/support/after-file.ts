/**
 * Cleanup after each test file for modules that tests share. Such a module is loaded once per worker, so hooks that it registered itself
 * would run for the worker's first file only.
 */
import { afterAll } from 'vitest'

type CleanUp = () => void | Promise<void>

const cleanUps: CleanUp[] = []

/** Runs `cleanUp` at the end of this test file and of every later one. Call it once, when the module loads. */
export function afterEachFile(cleanUp: CleanUp): void {
  cleanUps.push(cleanUp)
}

/** Registers the cleanup of the test file that is about to run. */
export function cleanUpAfterFile(): void {
  afterAll(async () => {
    for (const cleanUp of cleanUps) await cleanUp()
  })
}
