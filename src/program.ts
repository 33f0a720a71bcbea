/** Where the files of this program are. Built code starts built code, and source starts source. */
import { existsSync } from 'node:fs'
import { dirname, extname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

/** The modules of `src/workers` that are started as threads. */
export const threadNames = [
  'back',
  'clerk',
  'copies',
  'delivery',
  'export-check',
  'feed',
  'following',
  'http',
  'log',
  'renderer',
  'replication',
  'search',
  'shard',
  'tool-bench',
  'tools',
  'verify',
] as const
export type ThreadName = (typeof threadNames)[number]

/** The directory of `package.json`: the checkout, or the installed package. */
export const packageDirectory = directoryWith('package.json', import.meta.dirname)

/** `.ts` if the sources run directly. */
const extension = extname(import.meta.url)
export const isBuilt = extension !== '.ts'

/** The command line, to be run in a separate process. */
export const programFile = fileURLToPath(fileOfProgram(`cli/main${extension}`))

/** The file of a thread; `entry`, which starts it as a thread of a board, is next to it. */
export function threadFile(name: ThreadName): URL {
  const directory = isBuilt ? `workers/${name}` : 'workers'
  return fileOfProgram(`${directory}/${name}${extension}`)
}

export function entryFile(thread: URL): URL {
  return new URL(`entry${extension}`, thread)
}

/** A file of `src`, or its counterpart in `dist/`. */
export function fileOfProgram(path: string): URL {
  return pathToFileURL(join(packageDirectory, isBuilt ? 'dist' : '', 'src', path))
}

function directoryWith(file: string, directory: string): string {
  return existsSync(join(directory, file)) ? directory : directoryWith(file, dirname(directory))
}
