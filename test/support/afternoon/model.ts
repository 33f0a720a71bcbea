/**
 * The model: what every view of a room must show according to the history. Concurrent acts on events by several people are ordered by the
 * room's moderation log, once that is known to contain every act once, and none before its time.
 */
import type { EventJson } from '../client.ts'
import { checkTimes, type History, type ModerationAction, type Removal, type SentEvent } from './history.ts'
import { operator, people, type Room, rooms } from './people-and-rooms.ts'

export type Entry = {
  readonly seq: number
  readonly event_id: string
  readonly action: string
  readonly actor: { readonly id: string }
  readonly target?: string
  readonly reason?: string
}

export class Model {
  readonly history: History
  readonly #removals = new Map<string, Removal>()
  /** Originals that were ever hidden or redacted. */
  readonly everRemoved = new Set<string>()
  readonly #redacted = new Set<string>()

  constructor(history: History) {
    this.history = history
  }

  /** Applies the moderation log of a room, oldest entry first, to the room's events. */
  takeLog(room: Room, entries: readonly Entry[]): void {
    const byId = new Map(
      this.history.moderation.filter((action) => action.room === room).map((action) => [action.id, action]),
    )
    const actions = entries.map((entry, n): ModerationAction => {
      const action = byId.get(entry.event_id)
      byId.delete(entry.event_id)
      if (action === undefined)
        throw new Error(`${room.name}: ${JSON.stringify(entry)} was never acknowledged, or is there twice`)
      const told = [entry.seq, entry.action, entry.actor.id, entry.target, entry.reason]
      const expected = [n + 1, action.op, people[action.by]!.id, action.target, action.reason]
      if (JSON.stringify(told) !== JSON.stringify(expected))
        throw new Error(`${room.name}: entry ${JSON.stringify(told)} is not ${JSON.stringify(expected)}`)
      return action
    })
    for (const lost of byId.values()) throw new Error(`${room.name}: the moderation log lost ${JSON.stringify(lost)}`)
    checkTimes(actions, `moderation log of ${room.name}`)
    for (const action of actions) this.#apply(action)
  }

  #apply({ op, target, room, by, reason = '' }: ModerationAction): void {
    if (!['room.hide', 'room.restore', 'event.redact'].includes(op)) return
    const posted = this.history.events.get(target!)!
    const id = posted.original ?? posted.id
    const isGone = this.#removals.has(id)
    const isRedacted = this.#redacted.has(id)
    const isLegal = op === 'room.hide' ? !isGone : op === 'room.restore' ? isGone && !isRedacted : !isRedacted
    if (!isLegal)
      throw new Error(`${room.name}: ${op} of ${id} was taken after ${JSON.stringify(this.#removals.get(id))}`)
    if (op === 'room.restore') {
      this.#removals.delete(id)
      return
    }
    this.everRemoved.add(id)
    const isRunner = room.owner === by || room.moderator === by
    const power = op === 'event.redact' && posted.by === by ? 'author' : isRunner ? 'room' : 'operator'
    if (power === 'operator' && by !== operator) throw new Error(`${by} has no power over ${id}`)
    this.#removals.set(id, { reason, by: power })
    if (op === 'event.redact') this.#redacted.add(id)
  }

  removalOf({ id, original }: SentEvent): Removal | undefined {
    return this.#removals.get(original ?? id)
  }

  isRedacted({ id, original }: SentEvent): boolean {
    return this.#redacted.has(original ?? id)
  }

  /** Everything posted in a room, with versions listed separately. */
  versions(room: string): SentEvent[] {
    return this.history.inOrder(room)
  }

  originals(room: string): SentEvent[] {
    return this.versions(room).filter(({ original }) => original === undefined)
  }

  visible(room: string): SentEvent[] {
    return this.originals(room).filter((posted) => this.removalOf(posted) === undefined)
  }

  /** An original as lists and threads show it. */
  item(posted: SentEvent): unknown {
    const newest = this.history.newest(posted)
    const versions = (this.history.edits.get(posted.id)?.length ?? 0) + 1
    return this.#shape(posted, newest, versions === 1 ? {} : { version_id: newest.id, versions })
  }

  /** A single version, as tails, histories and exports show it. */
  version(posted: SentEvent): unknown {
    const { original, id } = posted
    const line = [...(this.history.edits.get(original ?? id) ?? [])].sort((a, b) => a.seq - b.seq)
    const next = original === undefined ? line[0] : line[line.indexOf(posted) + 1]
    return this.#shape(posted, posted, { supersedes: original, superseded_by: next?.id })
  }

  #shape(posted: SentEvent, shown: SentEvent, more: object): unknown {
    const gone = this.removalOf(posted)
    const to = this.isRedacted(posted) ? undefined : shown.to
    // The leaf of the shown text; if it is gone, that of the original.
    const { leaf } = gone === undefined ? shown : posted
    return shape({
      type: gone === undefined ? 'event' : 'tombstone',
      event_id: posted.id,
      room: posted.room.name,
      page: posted.page,
      seq: posted.seq,
      kind: posted.kind,
      author: { id: people[posted.by]!.id },
      thread: posted.thread,
      created_at: posted.at,
      hidden: gone !== undefined,
      votes: this.history.votesOf(posted.original ?? posted.id),
      log: leaf === undefined ? { state: 'none' } : { state: 'included', index: leaf },
      ...(posted.replyTo === undefined ? {} : { reply_to: posted.replyTo }),
      ...(gone === undefined ? { text: shown.text } : { reason: gone.reason, hidden_by: gone.by }),
      ...(to === undefined ? {} : { to }),
      ...more,
    } as Shaped)
  }

  pages(room: string): { name: string; count: number; threads: number; last_event_id: string }[] {
    const pages = new Map<string, SentEvent[]>()
    for (const posted of this.originals(room)) pages.set(posted.page, [...(pages.get(posted.page) ?? []), posted])
    return [...pages]
      .sort(([, a], [, b]) => b.at(-1)!.seq - a.at(-1)!.seq)
      .flatMap(([name, all]) => {
        const shown = all.filter((posted) => this.removalOf(posted) === undefined)
        const threads = shown.filter(({ replyTo }) => replyTo === undefined).length
        return shown.length === 0 ? [] : [{ name, count: shown.length, threads, last_event_id: shown.at(-1)!.id }]
      })
  }

  counts(room: string): { count: number; threads: number; pages: number } {
    const pages = this.pages(room)
    const sum = (key: 'count' | 'threads') => pages.reduce((total, page) => total + page[key], 0)
    return { count: sum('count'), threads: sum('threads'), pages: pages.length }
  }

  /** Every public event, by leaf. */
  publicVersions(): SentEvent[] {
    return rooms
      .filter(({ isPrivate }) => !isPrivate)
      .flatMap(({ name }) => this.versions(name))
      .sort((a, b) => a.leaf! - b.leaf!)
  }
}

type Shaped = EventJson & {
  readonly to?: string
  readonly hidden_by?: string
  readonly version_id?: string
  readonly versions?: number
  readonly supersedes?: string | undefined
  readonly superseded_by?: string | undefined
  readonly votes: object
  /** In an export line, where `kind` is as it was signed. */
  readonly actual_kind?: string
}

/** What a view shows of an event, in a fixed order, without what only the board can know. */
export function shape(event: EventJson): unknown {
  const { type, event_id, room, page, seq, author, text, reply_to, to, thread, created_at } = event as Shaped
  const { kind, actual_kind } = event as Shaped
  const { version_id, versions, supersedes, superseded_by, hidden, reason, hidden_by, votes, log } = event as Shaped
  const place = [type, event_id, room, page, seq, actual_kind ?? kind, author.id, reply_to ?? '', thread, created_at]
  const versioned = [version_id ?? '', versions ?? 0, supersedes ?? '', superseded_by ?? '']
  const { up, down, score } = votes as { up: number; down: number; score: number }
  const marks = [hidden, reason ?? '', hidden_by ?? '', up, down, score, log.state, log.index ?? -1]
  return { place, text: text ?? '', to: to ?? '', versioned, marks }
}
