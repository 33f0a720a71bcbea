/** Boards for tests, as `board-launch.ts` starts them, and directories for them: ended and removed after the test file. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEachFile } from './after-file.ts'
import { endBoards } from './board-launch.ts'

export {
  Board,
  type BoardOptions,
  type ExitStatus,
  expectStartRefused,
  startBoard,
  tryStartBoard,
} from './board-launch.ts'

const directories: string[] = []

afterEachFile(async () => {
  await endBoards()
  for (const directory of directories.splice(0)) {
    rmSync(directory, { recursive: true, force: true })
    rmSync(`${directory}.mark`, { force: true })
  }
})

/** A directory for a board, removed after the test file. */
export function boardDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), 'broadside-board-'))
  directories.push(directory)
  return directory
}
