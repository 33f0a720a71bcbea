/** Events in the answers of lists and threads: their JSON, and the facts that an answer needs about them. */

import { charsIn, textIn, toUtf8, type Utf8 } from '../../actors/kernel/utf8.ts'
import { Damage, prefetchBatchMax } from '../../storage/disk.ts'
import { eventJson, type PlainPost, plainPost } from './event-json.ts'
import type { EventView } from './event-view.ts'
import { endOf, listed, pageCharsMax, type ReadContext, type Scope, soonest } from './read.ts'
import { type ThreadTitle, titleOf } from './thread-title.ts'

export type ListedEvent = {
  readonly json: Utf8
  readonly room: string
  /** When its text expires, in Unix seconds; 0 if never. */
  readonly ends: number
  /** The title of a thread that begins with it. */
  readonly title: () => ThreadTitle
}

/** The stored parts of an event that is shown as it was written; undefined if it must be shown by `view`. */
export function plainPostAt(context: ReadContext, slot: number): PlainPost | undefined {
  try {
    return plainPost(context.state, slot, context.body, { now: context.now(), handleOf: context.handleOf })
  } catch (error) {
    if (error instanceof Damage) return undefined
    throw error
  }
}

export function titleOfPost({ text, format }: PlainPost): ThreadTitle {
  return titleOf({ text: textIn(text), format })
}

export function listedEvent(context: ReadContext, slot: number): ListedEvent {
  const plain = plainPostAt(context, slot)
  if (plain === undefined) return viewed(listed(context, slot))
  const { room, ends } = plain
  return { json: eventJson(context.state, plain, false), room, ends, title: () => titleOfPost(plain) }
}

function viewed(view: EventView): ListedEvent {
  return { json: toUtf8(JSON.stringify(view)), room: view.room, ends: endOf([view]), title: () => titleOf(view) }
}

export function listedWithin(context: ReadContext, slots: readonly number[]): Within<number, ListedEvent> {
  return jsonWithin(slots, (slot, n) => {
    prefetchGroup(slots, n, context.prefetch)
    return listedEvent(context, slot)
  })
}

/** Prefetches a whole group of items before the first of them is read. */
export function prefetchGroup<Item>(
  items: readonly Item[],
  n: number,
  prefetch: (some: readonly Item[]) => void,
): void {
  if (n % prefetchBatchMax === 0) prefetch(items.slice(n, n + prefetchBatchMax))
}

type Within<Item, Shown> = { readonly shown: readonly Shown[]; readonly cut: Item | undefined }

/** Shows items until the answer is large enough, but at least one. `cut`: the last one shown, if there were more. */
export function jsonWithin<Item, Shown extends { readonly json: Utf8 }>(
  items: readonly Item[],
  show: (item: Item, n: number) => Shown,
): Within<Item, Shown> {
  const shown: Shown[] = []
  let chars = 0
  for (const [n, item] of items.entries()) {
    const each = show(item, n)
    shown.push(each)
    chars += charsIn(each.json)
    if (chars > pageCharsMax && n < items.length - 1) return { shown, cut: item }
  }
  return { shown, cut: undefined }
}

export function jsonsOf(events: readonly Pick<ListedEvent, 'json'>[]): Utf8[] {
  return events.map(({ json }) => json)
}

/** What an answer with these events depends on, if all are of one room. */
export function scopeOfListed(events: readonly Pick<ListedEvent, 'room' | 'ends'>[]): Scope {
  const [first] = events
  return { ...(first === undefined ? {} : { room: first.room }), until: soonest(events.map(({ ends }) => ends)) }
}
