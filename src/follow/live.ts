/**
 * What the followers of a room's tail read when something happens: a post or a new version as itself, and whatever was done
 * to an event that they may have been shown before.
 *
 * To readers of server-sent events that is an event named `revision` with the event or tombstone as it is now, and without an
 * id: the place to resume at stays that of the newest post. The text tail has a line that begins with `#`.
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

/** Undefined: a tail does not tell of it. */
export function liveText(context: ReadContext, { kind, slot }: Change, format: TailFormat): string | undefined {
  if (kind === 'event.posted' || kind === 'event.superseded') {
    return tailText(versionOf(context, slot), format)
  }
  const what = done[kind]
  return what === undefined ? undefined : revisionText(listed(context, slot), what, format)
}

/** A post or a version as itself; where its record is damaged, the tombstone that says so. */
export function versionOf(context: ReadContext, slot: number): EventView {
  return listed(context, slot, () => versionView(context.state, slot, context.body(slot), showing(context, false)))
}

function revisionText(event: EventView, what: string, format: TailFormat): string {
  if (format === 'sse') return `event: revision\ndata: ${JSON.stringify(event)}\n\n`
  const reason = event.reason === undefined ? '' : `: ${inert(event.reason).replaceAll('\n', ' ')}`
  const line = `# ${event.event_id} is ${what}${reason}\n`
  return format === 'line' ? line : `${line}\n`
}
