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
  // The function warns once that it is experimental; Node itself runs these very files through it without a word.
  const warn = process.emitWarning
  process.emitWarning = () => {}
  collect(entry, sources)
  process.emitWarning = warn
  const hook = `import { registerHooks } from 'node:module'
const sources = ${JSON.stringify(sources)}
registerHooks({ load: (url, context, next) => Object.hasOwn(sources, url) ? { format: 'module', source: sources[url], shortCircuit: true } : next(url, context) })`
  return ['--import', `data:text/javascript;base64,${Buffer.from(hook).toString('base64')}`]
}

function collect(module: URL, sources: Record<string, string>): void {
  if (Object.hasOwn(sources, module.href)) return
  const source = known.get(module.href) ?? stripTypeScriptTypes(readFileSync(module, 'utf8'))
  known.set(module.href, source)
  sources[module.href] = source
  for (const [, specifier] of source.matchAll(/^(?:import|export)\b[^'"]*?\bfrom\s+['"](\.{1,2}\/[^'"]+\.ts)['"]/gm)) {
    collect(new URL(specifier!, module), sources)
  }
}
