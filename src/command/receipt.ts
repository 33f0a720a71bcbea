/** The receipt of a write: what was accepted, when, and where the public log has it. */
import type { Head } from '../../actors/shard.ts'

let lastHead: Head | undefined
let lastHeadJson = ''

/** `"tree_size":…,"checkpoint":…` of a head; one head covers a whole batch, so its text is made once. */
function headJson(head: Head): string {
  if (head !== lastHead) {
    lastHead = head
    lastHeadJson = `"tree_size":${head.size},"checkpoint":${JSON.stringify(head.checkpoint)}`
  }
  return lastHeadJson
}

export function receiptJson(
  sha: string,
  facts: { at: number; leaf: number | undefined; head: Head | undefined; duplicate?: boolean },
): string {
  const log =
    facts.leaf === undefined || facts.head === undefined ? '' : `,"log_index":${facts.leaf},${headJson(facts.head)}`
  const duplicate = facts.duplicate === true ? ',"duplicate":true' : ''
  return `{"event_id":"${sha.slice(0, 32)}","command_sha256":"${sha}","accepted_at":${facts.at}${duplicate}${log}}`
}
