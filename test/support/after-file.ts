/** What the parts that tests share end when a test file is over: a module is loaded once for all files of a worker, so its own hooks would belong to the first. */
import { afterAll } from 'vitest'

type CleanUp = () => void | Promise<void>

const cleanUps: CleanUp[] = []

/** Called once by a module, which is told of the end of every file from then on. */
export function afterEachFile(cleanUp: CleanUp): void {
  cleanUps.push(cleanUp)
}

/** For the file that is about to run. */
export function cleanUpAfterFile(): void {
  afterAll(async () => {
    for (const cleanUp of cleanUps) await cleanUp()
  })
}
