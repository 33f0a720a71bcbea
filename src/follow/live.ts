/**
 * What followers of a room's tail receive when something happens: a post or new version itself, or whatever was done to an event that they
 * may have been shown before.
 *
 * For server-sent events, the latter is an event named `revision` with the current event or tombstone. It has no id, so the position to
 * resume at stays that of the newest post. The text tail shows a line that begins with `#`.
 */
import type { Change } from '../../actors/records/board.ts'
import type { ChangeKind } from '../../actors/records/change-kinds.ts'
import { type EventView, versionView } from '../reads/event-view.ts'
import { listed, type ReadContext, showing } from '../reads/read.ts'
import { inert, type TailFormat, tailText } from './stream.ts'

const done: Partial<Record<ChangeKind, string>> = {
  'event.hidden': 'hidden',
  'event.restored': 'shown again',
  'event.redacted': 'redacted',
}

/** Undefined if tails do not show such changes. */
export function liveText(context: ReadContext, { kind, slot }: Change, format: TailFormat): string | undefined {
  if (kind === 'event.posted' || kind === 'event.superseded') {
    return tailText(versionOf(context, slot), format)
  }
  const what = done[kind]
  return what === undefined ? undefined : revisionText(listed(context, slot), what, format)
}

/** A single post or version; if its record is damaged, the tombstone that says so. */
export function versionOf(context: ReadContext, slot: number): EventView {
  return listed(context, slot, () => versionView(context.state, slot, context.body(slot), showing(context, false)))
}

function revisionText(event: EventView, what: string, format: TailFormat): string {
  if (format === 'sse') return `event: revision\ndata: ${JSON.stringify(event)}\n\n`
  const reason = event.reason === undefined ? '' : `: ${inert(event.reason).replaceAll('\n', ' ')}`
  const line = `# ${event.event_id} is ${what}${reason}\n`
  return format === 'line' ? line : `${line}\n`
}
