/**
 * Types are stripped once: the main thread does it, for itself and for all threads, and hands the JavaScript over.
 *
 * Node loads its type stripper (a WebAssembly build of swc) into every thread that meets a `.ts` file, and keeps it: measured
 * 9.5 MB a thread. A thread started with these arguments gets every module that its entry needs ready-made through a load hook,
 * out of memory that all threads share: handed over inside the arguments they were there six times a thread, and stayed.
 * Positions stay, because stripping only puts spaces where types were.
 */
import { readFileSync } from 'node:fs'
import { enableCompileCache, registerHooks, stripTypeScriptTypes } from 'node:module'
import { setEnvironmentData } from 'node:worker_threads'
import { compiled, madeOnce } from './code-cache.ts'

/** The UTF-8 bytes of every module stripped so far, by its URL: most are in several threads. */
const modules = new Map<string, SharedArrayBuffer>()

/** Under this name every thread finds them. */
const place = 'broadside modules'

const hook = `import { enableCompileCache, registerHooks } from 'node:module'
import { getEnvironmentData } from 'node:worker_threads'
enableCompileCache(${JSON.stringify(compiled)})
const modules = getEnvironmentData(${JSON.stringify(place)})
registerHooks({
  load(url, context, next) {
    const bytes = modules.get(url)
    if (bytes === undefined) return next(url, context)
    return { format: 'module', source: Buffer.from(bytes).toString(), shortCircuit: true }
  },
})`

/** From now on the modules that this thread imports are stripped here too: most of what threads need is then there already. */
export function stripHere(): void {
  enableCompileCache(compiled)
  registerHooks({
    load(url, context, next) {
      if (!url.startsWith('file:') || !url.endsWith('.ts')) return next(url, context)
      return { format: 'module', source: textOf(new URL(url)), shortCircuit: true }
    },
  })
}

/** `execArgv` for a thread whose entry is the `.ts` module at `entry`. */
export function threadArguments(entry: URL): string[] {
  collect(entry, new Set())
  setEnvironmentData(place, modules)
  return ['--import', `data:text/javascript,${encodeURIComponent(hook)}`]
}

/** Strips what a thread is made of ahead of its start, a module at a time, so that nobody waits for more than one of them. */
export async function strip(entry: URL): Promise<void> {
  const seen = new Set<string>()
  const next = [entry]
  for (let module = next.pop(); module !== undefined; module = next.pop()) {
    if (seen.has(module.href)) continue
    seen.add(module.href)
    const isNew = !modules.has(module.href)
    next.push(...importsOf(module))
    if (isNew) await new Promise((resolve) => setImmediate(resolve))
  }
}

function collect(module: URL, seen: Set<string>): void {
  if (seen.has(module.href)) return
  seen.add(module.href)
  for (const each of importsOf(module)) collect(each, seen)
}

/** The modules of ours that one begins with; strips it when it is the first to ask. */
function importsOf(module: URL): URL[] {
  const source = textOf(module)
  const found = source.matchAll(/^(?:import|export)\b[^'"]*?\bfrom\s+['"](\.{1,2}\/[^'"]+\.ts)['"]/gm)
  return Array.from(found, ([, specifier]) => new URL(specifier!, module))
}

function textOf(module: URL): string {
  const bytes = modules.get(module.href)
  if (bytes !== undefined) return Buffer.from(bytes).toString()
  const source = madeOnce(readFileSync(module, 'utf8'), withoutTypes)
  const kept = new SharedArrayBuffer(Buffer.byteLength(source))
  Buffer.from(kept).write(source)
  modules.set(module.href, kept)
  return source
}

function withoutTypes(source: string): string {
  // The function warns once that it is experimental; Node itself runs these very files through it without a word.
  const warn = process.emitWarning
  process.emitWarning = () => {}
  const bare = stripTypeScriptTypes(source)
  process.emitWarning = warn
  return bare
}
