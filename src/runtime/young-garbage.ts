/**
 * Frees the memory of messages and pages that have passed, before V8 counts it as old.
 *
 * Their bytes are outside of the heap. V8 frees those of young objects with each young collection, but begins one only when the
 * heap itself has grown: a thread that gets long messages and makes few objects had a full collection in their place after each
 * 12 MB. (`--expose-gc` is Node's documented way to the function; a smaller young generation for the whole thread costs posts.)
 */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/** With twice as many the full collections stayed. */
const bytesBetween = 4 * 1024 * 1024

type Collect = (options: { readonly type: 'minor' }) => void

/** Takes the bytes of what has passed, and collects young objects after every 4 MiB of them. */
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
