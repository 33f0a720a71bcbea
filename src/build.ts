/**
 * Builds `dist/` from `src`, `actors`, and `storage`: Rolldown bundles the program and its threads with their source maps and shrinks the
 * scripts of pages, `tsc` compiles the client module and its declarations, and the files that are served unchanged are copied.
 *
 * Each thread is bundled into a few files with everything it needs: every starting thread loads its modules again, and many small files
 * take twice as long. Only the command line is split into many chunks, because each command needs different ones.
 *
 * `npm ci` runs the build (`prepare`), as does everything that starts built code from a checkout. An up-to-date build is left alone: a
 * stamp in `dist/` contains the SHA-256 of all inputs. A new build is created next to the old one and then replaces it, so a failed build
 * leaves the old one in place, and a program that starts in the meantime finds a complete one.
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

/** An error that a person can fix, in a sentence that says how. */
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
    await shrinkPageScripts(fresh)
    writeFileSync(join(fresh, stampName), wanted)
    replace(fresh)
  } catch (error) {
    rmSync(fresh, { recursive: true, force: true })
    if (error instanceof BuildFailed) fail(error.message)
    throw error
  }
}

/**
 * The command line, and each thread separately: code that two threads share is in both bundles, because no thread runs another's code. The
 * entry of a thread is bundled with it, because they share modules with state: what ran in a turn, the log level.
 */
async function buildProgram(fresh: string): Promise<void> {
  // Imported here, so that an up-to-date build needs no bundler.
  const { rolldown } = await import('rolldown')
  const buildPart = async (directory: string, modules: readonly string[]): Promise<void> => {
    const bundle = await rolldown({
      input: modules.map((name) => join(root, 'src', name)),
      platform: 'node',
      // Packages are used as installed: their versions are pinned, and some have native parts. The compiler's helpers are not packages, so
      // they are bundled.
      external: (id) => /^[^./]/.test(id) && !id.startsWith('@oxc-project/runtime/'),
      // Syntax that Node 22 understands is not transformed.
      transform: { target: 'esnext' },
    })
    await bundle.write({
      dir: join(fresh, 'src', directory),
      format: 'esm',
      entryFileNames: '[name].js',
      chunkFileNames: 'parts/[name].js',
      // Node reads half as much: a start takes 10% less processor time and 8 MB less memory. Profiles and stack traces show names, so
      // functions and classes keep theirs.
      minify: { compress: { keepNames: { function: true, class: true } }, mangle: { keepNames: true }, codegen: true },
      sourcemap: true,
      sourcemapExcludeSources: true,
    })
    await bundle.close()
  }
  const threads = threadNames.map((name) => buildPart(`workers/${name}`, [`workers/${name}.ts`, 'workers/entry.ts']))
  // Wait for all, so that none is still writing when a failed build is cleaned up.
  const built = await Promise.allSettled([buildPart('cli', ['cli/main.ts']), ...threads])
  for (const each of built) if (each.status === 'rejected') throw each.reason
}

/**
 * Boards serve this module as it is, so it has no source map. Types are checked by `npm run typecheck`; checking them here would double the
 * time of a build.
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

/**
 * Pages load their scripts without comments and spaces, which would be a fifth of their bytes. Names stay, so that a person can read in
 * their browser what signs with their key. The script for other sites stays as it is: they may state its hash.
 */
async function shrinkPageScripts(fresh: string): Promise<void> {
  const { minifySync } = await import('rolldown/utils')
  for (const path of globSync('src/pages/assets/*.js', { cwd: root, exclude: ['**/embed-v1.js'] })) {
    const script = readFileSync(join(root, path), 'utf8')
    const { code, errors } = minifySync(path, script, { module: true, compress: false, mangle: false })
    if (errors.length > 0) throw new BuildFailed(`Mend ${path}: ${errors.map(({ message }) => message).join('; ')}`)
    writeFileSync(join(fresh, path), code)
  }
}

/** Replaces the old build with the new one. */
function replace(fresh: string): void {
  chmodSync(fresh, 0o755)
  const old = `${fresh}.old`
  if (existsSync(dist)) renameSync(dist, old)
  renameSync(fresh, dist)
  rmSync(old, { recursive: true, force: true })
}

/** A digest of all inputs of `dist/`, including their names. */
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
