/**
 * Builds `dist/` from `src`, `actors` and `storage`: JavaScript, declarations and source maps by `tsc`, and the files that
 * browsers get as they are.
 *
 * `npm ci` runs it (`prepare`), and so does whatever starts built code from a checkout. A build that fits its sources is left
 * alone: a stamp in `dist/` holds the SHA-256 of everything it was made from.
 */
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { copyFileSync, existsSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

const root = join(import.meta.dirname, '..')
const dist = join(root, 'dist')
const stampFile = join(dist, '.built-from')

build()

function build(): void {
  const wanted = digestOfSources()
  if (stampOf() === wanted) return
  const compiler = join(root, 'node_modules/typescript/bin/tsc')
  if (!existsSync(compiler))
    fail('dist/ does not match its sources, and TypeScript is not installed. Run `npm ci` without `--omit=dev`.')
  rmSync(dist, { recursive: true, force: true })
  const { status } = spawnSync(process.execPath, [compiler, '-p', join(root, 'src/tsconfig.build.json')], {
    stdio: 'inherit',
  })
  if (status !== 0) fail('The build failed. Fix what is listed above and run `npm run build`.')
  for (const path of globSync('src/**/*.{js,css}', { cwd: root })) copy(path)
  writeFileSync(stampFile, wanted)
}

/** Everything that `dist/` is made from, names included. */
function digestOfSources(): string {
  const digest = createHash('sha256')
  const inputs = [
    'package.json',
    'tsconfig.json',
    ...globSync('{src,actors,storage}/**/*.{ts,js,css,json}', { cwd: root }),
  ]
  for (const path of inputs.toSorted()) {
    const bytes = readFileSync(join(root, path))
    digest.update(`${path}\0${bytes.length}\0`).update(bytes)
  }
  return digest.digest('hex')
}

function stampOf(): string | undefined {
  return existsSync(stampFile) ? readFileSync(stampFile, 'utf8') : undefined
}

function copy(path: string): void {
  const target = join(dist, path)
  if (existsSync(target)) fail(`${path} has the name of a built module. Rename one of the two.`)
  mkdirSync(dirname(target), { recursive: true })
  copyFileSync(join(root, path), target)
}

function fail(words: string): never {
  process.stderr.write(`${words}\n`)
  process.exit(1)
}
