/**
 * The model: what every view of a room must show according to the book. Concurrent acts on events by several people are ordered by the
 * room's moderation log, once that is known to contain every act once, and none before its time.
 */
import type { EventJson } from '../client.ts'
import { type Book, type Deed, type Gone, keepsTime, type Said } from './book.ts'
import { operator, people, type Room, rooms } from './town.ts'

export type Entry = {
  readonly seq: number
  readonly event_id: string
  readonly action: string
  readonly actor: { readonly id: string }
  readonly target?: string
  readonly reason?: string
}

export class Model {
  readonly book: Book
  readonly #gone = new Map<string, Gone>()
  /** Originals that were ever hidden or redacted. */
  readonly everGone = new Set<string>()
  readonly #redacted = new Set<string>()

  constructor(book: Book) {
    this.book = book
  }

  /** Applies the moderation log of a room, oldest entry first, to the room's events. */
  takeLog(room: Room, entries: readonly Entry[]): void {
    const byId = new Map(this.book.deeds.filter((deed) => deed.room === room).map((deed) => [deed.id, deed]))
    const deeds = entries.map((entry, n): Deed => {
      const deed = byId.get(entry.event_id)
      byId.delete(entry.event_id)
      if (deed === undefined)
        throw new Error(`${room.name}: ${JSON.stringify(entry)} was never acknowledged, or is there twice`)
      const told = [entry.seq, entry.action, entry.actor.id, entry.target, entry.reason]
      const expected = [n + 1, deed.op, people[deed.by]!.id, deed.target, deed.reason]
      if (JSON.stringify(told) !== JSON.stringify(expected))
        throw new Error(`${room.name}: entry ${JSON.stringify(told)} is not ${JSON.stringify(expected)}`)
      return deed
    })
    for (const lost of byId.values()) throw new Error(`${room.name}: the moderation log lost ${JSON.stringify(lost)}`)
    keepsTime(deeds, `moderation log of ${room.name}`)
    for (const deed of deeds) this.#apply(deed)
  }

  #apply({ op, target, room, by, reason = '' }: Deed): void {
    if (!['room.hide', 'room.restore', 'event.redact'].includes(op)) return
    const said = this.book.said.get(target!)!
    const id = said.original ?? said.id
    const isGone = this.#gone.has(id)
    const isRedacted = this.#redacted.has(id)
    const isLegal = op === 'room.hide' ? !isGone : op === 'room.restore' ? isGone && !isRedacted : !isRedacted
    if (!isLegal) throw new Error(`${room.name}: ${op} of ${id} was taken after ${JSON.stringify(this.#gone.get(id))}`)
    if (op === 'room.restore') {
      this.#gone.delete(id)
      return
    }
    this.everGone.add(id)
    const isRunner = room.owner === by || room.moderator === by
    const power = op === 'event.redact' && said.by === by ? 'author' : isRunner ? 'room' : 'operator'
    if (power === 'operator' && by !== operator) throw new Error(`${by} has no power over ${id}`)
    this.#gone.set(id, { reason, by: power })
    if (op === 'event.redact') this.#redacted.add(id)
  }

  goneOf({ id, original }: Said): Gone | undefined {
    return this.#gone.get(original ?? id)
  }

  isRedacted({ id, original }: Said): boolean {
    return this.#redacted.has(original ?? id)
  }

  /** Everything posted in a room, with versions listed separately. */
  versions(room: string): Said[] {
    return this.book.inOrder(room)
  }

  originals(room: string): Said[] {
    return this.versions(room).filter(({ original }) => original === undefined)
  }

  visible(room: string): Said[] {
    return this.originals(room).filter((said) => this.goneOf(said) === undefined)
  }

  /** An original as lists and threads show it. */
  item(said: Said): unknown {
    const newest = this.book.newest(said)
    const versions = (this.book.edits.get(said.id)?.length ?? 0) + 1
    return this.#shape(said, newest, versions === 1 ? {} : { version_id: newest.id, versions })
  }

  /** A single version, as tails, histories and exports show it. */
  version(said: Said): unknown {
    const { original, id } = said
    const line = [...(this.book.edits.get(original ?? id) ?? [])].sort((a, b) => a.seq - b.seq)
    const next = original === undefined ? line[0] : line[line.indexOf(said) + 1]
    return this.#shape(said, said, { supersedes: original, superseded_by: next?.id })
  }

  #shape(said: Said, shown: Said, more: object): unknown {
    const gone = this.goneOf(said)
    const to = this.isRedacted(said) ? undefined : shown.to
    // The leaf of the shown text; if it is gone, that of the original.
    const { leaf } = gone === undefined ? shown : said
    return shape({
      type: gone === undefined ? 'event' : 'tombstone',
      event_id: said.id,
      room: said.room.name,
      page: said.page,
      seq: said.seq,
      kind: said.kind,
      author: { id: people[said.by]!.id },
      thread: said.thread,
      created_at: said.at,
      hidden: gone !== undefined,
      votes: this.book.votesOf(said.original ?? said.id),
      log: leaf === undefined ? { state: 'none' } : { state: 'included', index: leaf },
      ...(said.replyTo === undefined ? {} : { reply_to: said.replyTo }),
      ...(gone === undefined ? { text: shown.text } : { reason: gone.reason, hidden_by: gone.by }),
      ...(to === undefined ? {} : { to }),
      ...more,
    } as Shaped)
  }

  pages(room: string): { name: string; count: number; threads: number; last_event_id: string }[] {
    const pages = new Map<string, Said[]>()
    for (const said of this.originals(room)) pages.set(said.page, [...(pages.get(said.page) ?? []), said])
    return [...pages]
      .sort(([, a], [, b]) => b.at(-1)!.seq - a.at(-1)!.seq)
      .flatMap(([name, all]) => {
        const shown = all.filter((said) => this.goneOf(said) === undefined)
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
  publicVersions(): Said[] {
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
}

/** What a view shows of an event, in a fixed order, without what only the board can know. */
export function shape(event: EventJson): unknown {
  const { type, event_id, room, page, seq, kind, author, text, reply_to, to, thread, created_at } = event as Shaped
  const { version_id, versions, supersedes, superseded_by, hidden, reason, hidden_by, votes, log } = event as Shaped
  const place = [type, event_id, room, page, seq, kind, author.id, reply_to ?? '', thread, created_at]
  const versioned = [version_id ?? '', versions ?? 0, supersedes ?? '', superseded_by ?? '']
  const { up, down, score } = votes as { up: number; down: number; score: number }
  const marks = [hidden, reason ?? '', hidden_by ?? '', up, down, score, log.state, log.index ?? -1]
  return { place, text: text ?? '', to: to ?? '', versioned, marks }
}
