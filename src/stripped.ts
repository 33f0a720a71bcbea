/**
 * Threads that need not strip types: the main thread does it once and hands the JavaScript over.
 *
 * Node loads its type stripper (a WebAssembly build of swc) into every thread that meets a `.ts` file, and keeps it:
 * measured 9.5 MB a thread. A thread started with these arguments gets the modules of its
 * entry ready-made through a load hook. Positions stay, because stripping only puts spaces where types were.
 */
import { readFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'

/** What was stripped for one thread, for the next: most modules are in several. */
const known = new Map<string, string>()

/** `execArgv` for a thread whose entry is the `.ts` module at `entry`. */
export function threadArguments(entry: URL): string[] {
  const sources: Record<string, string> = {}
  collect(entry, sources)
  const hook = `import { registerHooks } from 'node:module'
const sources = ${JSON.stringify(sources)}
registerHooks({ load: (url, context, next) => Object.hasOwn(sources, url) ? { format: 'module', source: sources[url], shortCircuit: true } : next(url, context) })`
  return ['--import', `data:text/javascript;base64,${Buffer.from(hook).toString('base64')}`]
}

/** Strips what a thread is made of ahead of its start, a module at a time, so that nobody waits for more than one of them. */
export async function strip(entry: URL): Promise<void> {
  const seen = new Set<string>()
  const next = [entry]
  for (let module = next.pop(); module !== undefined; module = next.pop()) {
    if (seen.has(module.href)) continue
    seen.add(module.href)
    const isNew = !known.has(module.href)
    next.push(...importsOf(module, strippedOf(module)))
    if (isNew) await new Promise((resolve) => setImmediate(resolve))
  }
}

function collect(module: URL, sources: Record<string, string>): void {
  if (Object.hasOwn(sources, module.href)) return
  const source = strippedOf(module)
  sources[module.href] = source
  for (const each of importsOf(module, source)) collect(each, sources)
}

function strippedOf(module: URL): string {
  const stripped = known.get(module.href)
  if (stripped !== undefined) return stripped
  // The function warns once that it is experimental; Node itself runs these very files through it without a word.
  const warn = process.emitWarning
  process.emitWarning = () => {}
  const source = stripTypeScriptTypes(readFileSync(module, 'utf8'))
  process.emitWarning = warn
  known.set(module.href, source)
  return source
}

function importsOf(module: URL, source: string): URL[] {
  const found = source.matchAll(/^(?:import|export)\b[^'"]*?\bfrom\s+['"](\.{1,2}\/[^'"]+\.ts)['"]/gm)
  return Array.from(found, ([, specifier]) => new URL(specifier!, module))
}
