/** Where the files of this program are. Built code starts built code, and source starts source. */
import { existsSync } from 'node:fs'
import { dirname, extname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The directory of `package.json`: the checkout, or the installed package. */
export const packageDirectory = directoryWith('package.json', import.meta.dirname)

/** The command line, to be run in a process of its own. */
export const programFile = fileURLToPath(besideThis('cli/main'))

/** The entry file of the thread `name` in `src/workers`. */
export function threadFile(name: string): URL {
  return besideThis(`workers/${name}`)
}

function besideThis(module: string): URL {
  return new URL(`./${module}${extname(import.meta.url)}`, import.meta.url)
}

function directoryWith(file: string, directory: string): string {
  return existsSync(join(directory, file)) ? directory : directoryWith(file, dirname(directory))
}
