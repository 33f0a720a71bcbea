/**
 * Builds `dist/` from `src`, `actors` and `storage`: JavaScript, declarations and source maps by `tsc`, and the files that
 * are served as they are.
 *
 * `npm ci` runs it (`prepare`), and so does whatever starts built code from a checkout. A build that fits its sources is left
 * alone: a stamp in `dist/` holds the SHA-256 of everything it was made from. A new one is made beside it and then takes its place,
 * so that a build that fails leaves the old one, and a program that starts meanwhile finds one that is whole.
 */
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  chmodSync,
  copyFileSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'

const root = join(import.meta.dirname, '..')
const dist = join(root, 'dist')
const stampName = '.built-from'

/** What a person can mend, in a sentence that says how. */
class BuildFailed extends Error {}

build()

function build(): void {
  const wanted = digestOfSources()
  if (stampOf() === wanted) return
  const compiler = join(root, 'node_modules/typescript/bin/tsc')
  if (!existsSync(compiler))
    fail('dist/ does not match its sources, and TypeScript is not installed. Run `npm ci` without `--omit=dev`.')
  const fresh = mkdtempSync(`${dist}.`)
  try {
    const args = [compiler, '-p', join(root, 'src/tsconfig.build.json'), '--outDir', fresh]
    const { status } = spawnSync(process.execPath, args, { stdio: 'inherit' })
    if (status !== 0) throw new BuildFailed('The build failed. Fix what is listed above and run `npm run build`.')
    for (const path of globSync('src/**/*.{js,css,py}', { cwd: root })) copy(path, fresh)
    withoutMap(join(fresh, 'src/client/broadside.js'))
    writeFileSync(join(fresh, stampName), wanted)
    replace(fresh)
  } catch (error) {
    rmSync(fresh, { recursive: true, force: true })
    if (error instanceof BuildFailed) fail(error.message)
    throw error
  }
}

/** Boards serve this module alone: its map would be missed there. */
function withoutMap(path: string): void {
  const code = readFileSync(path, 'utf8')
  writeFileSync(path, code.replace(/\n\/\/# sourceMappingURL=[^\n]*\n?$/, '\n'))
  rmSync(`${path}.map`, { force: true })
}

/** Puts the new build in the place of the old one. */
function replace(fresh: string): void {
  chmodSync(fresh, 0o755)
  const old = `${fresh}.old`
  if (existsSync(dist)) renameSync(dist, old)
  renameSync(fresh, dist)
  rmSync(old, { recursive: true, force: true })
}

/** Everything that `dist/` is made from, names included. */
function digestOfSources(): string {
  const digest = createHash('sha256')
  const inputs = [
    'package.json',
    'tsconfig.json',
    ...globSync('{src,actors,storage}/**/*.{ts,js,css,json,py}', { cwd: root }),
  ]
  for (const path of inputs.toSorted()) {
    const bytes = readFileSync(join(root, path))
    digest.update(`${path}\0${bytes.length}\0`).update(bytes)
  }
  return digest.digest('hex')
}

function stampOf(): string | undefined {
  const stampFile = join(dist, stampName)
  return existsSync(stampFile) ? readFileSync(stampFile, 'utf8') : undefined
}

function copy(path: string, fresh: string): void {
  const target = join(fresh, path)
  if (existsSync(target)) throw new BuildFailed(`${path} has the name of a built module. Rename one of the two.`)
  mkdirSync(dirname(target), { recursive: true })
  copyFileSync(join(root, path), target)
}

function fail(words: string): never {
  process.stderr.write(`${words}\n`)
  process.exit(1)
}
