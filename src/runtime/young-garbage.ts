/**
 * Frees the memory of processed messages and pages before V8 promotes it to the old generation.
 *
 * Their bytes are outside the heap. V8 frees those of young objects with each minor collection, but starts one only when the heap itself
 * has grown. So a thread that receives long messages and creates few objects had a full collection after each 12 MB instead. (`--expose-gc`
 * is Node's documented way to the function; a smaller young generation for the whole thread costs posts.)
 */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/** With twice as many, the full collections remained. */
const bytesBetween = 4 * 1024 * 1024

type Collect = (options: { readonly type: 'minor' }) => void

/** Takes the number of bytes processed, and runs a minor collection after every 4 MiB. */
export function youngGarbage(): (bytes: number) => void {
  let collect: Collect | undefined
  let passed = 0
  return (bytes) => {
    passed += bytes
    if (passed < bytesBetween) return
    passed = 0
    collect ??= collector()
    collect({ type: 'minor' })
  }
}

function collector(): Collect {
  setFlagsFromString('--expose-gc')
  const collect: Collect = runInNewContext('gc')
  setFlagsFromString('--no-expose-gc')
  return collect
}
