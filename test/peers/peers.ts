/**
 * Finds the programs we are checked against. A missing one is not a success: on a developer's machine the tests that need it are skipped
 * and say how to get it; in CI (CI=true) they fail.
 */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'

const HOW = 'install it as root with: sh test/peers/install.sh'

/** Where Debian puts golang.org/x/mod, as a GOPATH. */
const GOPATH = '/usr/share/gocode'
const sumdb = join(GOPATH, 'src/golang.org/x/mod/sumdb')

/** The path of a program, or undefined. */
export function findProgram(name: string, ...furtherFolders: string[]): string | undefined {
  const folders = [...furtherFolders, ...(process.env.PATH ?? '').split(delimiter)]
  return folders.map((folder) => join(folder, name)).find((path) => existsSync(path))
}

/** A sentence on what is missing for a test that needs this program; undefined if it is there. */
export function missingProgram(name: string): string | undefined {
  return findProgram(name) === undefined ? `${name} is missing; ${HOW}` : undefined
}

/** The path of a shared library of this machine, relative to its library folder, or undefined. */
export function findLibrary(name: string): string | undefined {
  const folders = ['/usr/lib/x86_64-linux-gnu', '/usr/lib/aarch64-linux-gnu', '/usr/lib64', '/usr/lib']
  return folders.map((folder) => join(folder, name)).find((path) => existsSync(path))
}

/** The path of nats-server as packaged by a Debian release, where `install.sh` unpacks it. */
export function natsServer(release: 'forky' | 'bookworm'): string {
  return join(import.meta.dirname, `nats/${release}/usr/sbin/nats-server`)
}

/** A sentence on what is missing for a test that needs NATS; undefined if it is there. */
export function missingNats(): string | undefined {
  const isThere = existsSync(natsServer('forky')) && existsSync(natsServer('bookworm'))
  return isThere ? undefined : `nats-server is missing; ${HOW}`
}

/** A sentence on what is missing for a test that needs this library; undefined if it is there. */
export function missingLibrary(name: string): string | undefined {
  return findLibrary(name) === undefined ? `${name} is missing; ${HOW}` : undefined
}

/** Where the packages of test/peers/package.json are. */
const packages = join(import.meta.dirname, 'node_modules')

/** A sentence on what is missing for a test that needs this npm package; undefined if it is there. */
export function missingPackage(name: string): string | undefined {
  if (existsSync(join(packages, name, 'package.json'))) return undefined
  return `${name} is missing; install it with: npm ci --ignore-scripts --prefix test/peers`
}

/** A package of test/peers/package.json, by the file in it that is imported. */
export async function peerPackage<Module>(name: string, file: string): Promise<Module> {
  return (await import(join(packages, name, file))) as Module
}

/** A sentence on what is missing for the Go verifier; undefined if it can be built. */
export function missingForGoVerifier(): string | undefined {
  if (findGo() === undefined) return `Go is missing; ${HOW}`
  return existsSync(sumdb) ? undefined : `golang.org/x/mod is missing; ${HOW}`
}

/**
 * Whether to skip the tests of a missing peer: `describe.skipIf(skipWithout(missing))`.
 *
 * @throws in CI, where a peer must not be missing
 */
export function skipWithout(missing: string | undefined): boolean {
  if (missing === undefined) return false
  if (process.env.CI === 'true') throw new Error(missing)
  console.warn(`tests skipped: ${missing}`)
  return true
}

/** For the title of the skipped tests, so that the report says why. */
export function skipNote(missing: string | undefined): string {
  return missing === undefined ? '' : ` [skipped: ${missing}]`
}

/** A request to the Go verifier. Hashes and entries are standard base64. */
export type GoRequest = {
  readonly vkey: string
  readonly checkpoint: string
  readonly proofs?: readonly {
    readonly index: number
    /** Go computes the leaf hash from the entry; without one it is taken as given. */
    readonly entry?: string
    readonly leaf_hash?: string
    readonly path: readonly string[]
  }[]
  readonly consistency?: readonly {
    readonly from: number
    readonly from_root: string
    readonly to: number
    readonly to_root: string
    readonly path: readonly string[]
  }[]
  /** Entries and older heads that Go proves on its own, with the tiles of a running board. */
  readonly tiles?: {
    /** The prefix of the log, without a trailing slash. */
    readonly url: string
    readonly entries: readonly number[]
    readonly heads: readonly { readonly size: number; readonly root: string }[]
  }
}

export type GoAnswer = { readonly agrees: boolean; readonly sentence: string }

/**
 * Builds the Go verifier into a folder: `ask` returns whether Go agrees, and its sentence; `askMeanwhile` does so while this process runs
 * on, which may have to answer Go's requests for tiles.
 *
 * @throws if it cannot be built; call {@link missingForGoVerifier} before
 */
export function buildGoVerifier(folder: string): {
  ask(request: GoRequest): GoAnswer
  askMeanwhile(request: GoRequest): Promise<GoAnswer>
} {
  const program = buildGo('verify', folder)
  return {
    ask(request) {
      const run = spawnSync(program, { input: JSON.stringify(request), encoding: 'utf8' })
      if (run.status !== 0 && run.status !== 1) throw new Error(`the Go verifier fell over: ${run.error ?? run.stderr}`)
      return { agrees: run.status === 0, sentence: run.stdout.trim() }
    },
    async askMeanwhile(request) {
      const child = spawn(program, { stdio: ['pipe', 'pipe', 'inherit'] })
      child.stdin.end(JSON.stringify(request))
      const closed = once(child, 'close')
      const sentence = (await child.stdout.setEncoding('utf8').toArray()).join('').trim()
      const [code] = (await closed) as [number | null]
      if (code !== 0 && code !== 1) throw new Error(`the Go verifier fell over: ${sentence}`)
      return { agrees: code === 0, sentence }
    },
  }
}

/** A sentence on what is missing to compile patterns with RE2; undefined if nothing is. */
export function missingForGo(): string | undefined {
  return findGo() === undefined ? `Go is missing; ${HOW}` : undefined
}

/** The objections of RE2 (Go's regexp) to these patterns. */
export function faultsOfRe2(patterns: readonly string[], folder: string): readonly string[] {
  const run = spawnSync(buildGo('patterns', folder), { input: JSON.stringify(patterns), encoding: 'utf8' })
  if (run.status !== 0) throw new Error(`the Go program fell over: ${run.error ?? run.stderr}`)
  return JSON.parse(run.stdout) as string[]
}

/** Builds a program of the folder next to this file into `folder`; returns its path. */
function buildGo(name: string, folder: string): string {
  const program = join(folder, name)
  const go = findGo()
  if (go === undefined) throw new Error(`Go is missing; ${HOW}`)
  const env = { ...process.env, GOPATH, GO111MODULE: 'off', GOFLAGS: '', GOTOOLCHAIN: 'local' }
  const source = join(import.meta.dirname, `go/${name}.go`)
  const build = spawnSync(go, ['build', '-o', program, source], { env, encoding: 'utf8' })
  if (build.status !== 0) throw new Error(`${name}.go cannot be built: ${build.error ?? build.stderr}`)
  return program
}

function findGo(): string | undefined {
  return findProgram('go', '/usr/lib/go-1.19/bin')
}
