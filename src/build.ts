/**
 * Builds `dist/` from `src`, `actors` and `storage`: the program and its threads with their source maps by Rolldown, the client
 * module and its declarations by `tsc`, and the files that are served as they are.
 *
 * A thread is a few files, with all that it needs: each thread that starts loads its modules again, and many small files take twice as
 * long. Only the command line is in many pieces, as each command needs others.
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
import { threadNames } from './program.ts'

const root = join(import.meta.dirname, '..')
const dist = join(root, 'dist')
const stampName = '.built-from'

/** What a person can mend, in a sentence that says how. */
class BuildFailed extends Error {}

await build()

async function build(): Promise<void> {
  const wanted = digestOfSources()
  if (stampOf() === wanted) return
  for (const tool of ['typescript', 'rolldown'])
    if (!existsSync(join(root, 'node_modules', tool)))
      fail(`dist/ does not match its sources, and ${tool} is not installed. Run \`npm ci\` without \`--omit=dev\`.`)
  const fresh = mkdtempSync(`${dist}.`)
  try {
    await buildProgram(fresh)
    buildClient(fresh)
    for (const path of globSync('src/**/*.{js,css,py}', { cwd: root })) copy(path, fresh)
    writeFileSync(join(fresh, stampName), wanted)
    replace(fresh)
  } catch (error) {
    rmSync(fresh, { recursive: true, force: true })
    if (error instanceof BuildFailed) fail(error.message)
    throw error
  }
}

/**
 * The command line, and each thread by itself: what two threads share is in both, as no thread has the code of another. The entry of a
 * thread is built with it, as they share modules that hold something: what a turn did, how much is logged.
 */
async function buildProgram(fresh: string): Promise<void> {
  // Here, so that a build that is up to date needs no bundler.
  const { rolldown } = await import('rolldown')
  const buildPart = async (directory: string, modules: readonly string[]): Promise<void> => {
    const bundle = await rolldown({
      input: modules.map((name) => join(root, 'src', name)),
      platform: 'node',
      // Packages stay as they are installed: their versions are pinned, and some have native parts. The compiler's helpers are none of them.
      external: (id) => /^[^./]/.test(id) && !id.startsWith('@oxc-project/runtime/'),
      // What Node 22 understands is left as it was written.
      transform: { target: 'esnext' },
    })
    await bundle.write({
      dir: join(fresh, 'src', directory),
      format: 'esm',
      entryFileNames: '[name].js',
      chunkFileNames: 'parts/[name].js',
      // Node reads half as much: a start takes a tenth less of the processor, and 8 MB less memory. Profiles and stack traces show names,
      // so functions and classes keep theirs.
      minify: { compress: { keepNames: { function: true, class: true } }, mangle: { keepNames: true }, codegen: true },
      sourcemap: true,
      sourcemapExcludeSources: true,
    })
    await bundle.close()
  }
  const threads = threadNames.map((name) => buildPart(`workers/${name}`, [`workers/${name}.ts`, 'workers/entry.ts']))
  // All are over before what one of them has left is removed.
  const built = await Promise.allSettled([buildPart('cli', ['cli/main.ts']), ...threads])
  for (const each of built) if (each.status === 'rejected') throw each.reason
}

/**
 * Boards serve this module as it stands, so it has no source map. Types are not checked here, that is `npm run typecheck`: a build would
 * take twice as long.
 */
function buildClient(fresh: string): void {
  const own = join(fresh, 'client')
  const compiler = join(root, 'node_modules/typescript/bin/tsc')
  const args = [compiler, '-p', join(root, 'src/tsconfig.build.json'), '--outDir', own]
  const { status } = spawnSync(process.execPath, args, { stdio: 'inherit' })
  if (status !== 0) throw new BuildFailed('The build failed. Fix what is listed above and run `npm run build`.')
  for (const path of globSync('{src/client/broadside.js,**/*.d.ts}', { cwd: own })) copy(path, fresh, own)
  rmSync(own, { recursive: true })
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

function copy(path: string, fresh: string, from: string = root): void {
  const target = join(fresh, path)
  if (existsSync(target)) throw new BuildFailed(`${path} has the name of a built module. Rename one of the two.`)
  mkdirSync(dirname(target), { recursive: true })
  copyFileSync(join(from, path), target)
}

function fail(words: string): never {
  process.stderr.write(`${words}\n`)
  process.exit(1)
}
