/**
 * Frees the memory of messages that were handled, before V8 counts it as old.
 *
 * The bytes of a message are outside of the heap. V8 frees those of young objects with each young collection, but begins one only when the
 * heap itself has grown: a thread that gets long messages and makes few objects of them had a full collection in their place after each
 * 12 MB. (`--expose-gc` is Node's documented way to the function; a smaller young generation for the whole thread costs posts.)
 */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/** Half of it was not enough to keep full collections away; more often takes more time than it saves. */
const bytesBetween = 4 * 1024 * 1024

type Collect = (options: { readonly type: 'minor' }) => void

/** Takes the bytes of each message when it has been handled, and collects young objects after every 4 MiB of them. */
export function youngGarbage(): (bytes: number) => void {
  let collect: Collect | undefined
  let received = 0
  return (bytes) => {
    received += bytes
    if (received < bytesBetween) return
    received = 0
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
