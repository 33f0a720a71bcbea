/** Everything that was acknowledged in the afternoon, which must stay true forever. The board is checked against it at the end. */

import { type Room, rooms } from './people-and-rooms.ts'
import type { Span } from './restarting-board.ts'

/** One signed event: a post, or a new version of one. */
export type SentEvent = Span & {
  readonly id: string
  readonly sha256: string
  readonly body: string
  readonly room: Room
  readonly seq: number
  readonly by: number
  readonly text: string
  readonly page: string
  readonly kind: string
  readonly replyTo?: string
  readonly to?: string
  readonly thread: string
  /** For a version: the event that it belongs to. */
  readonly original?: string
  readonly at: number
  readonly leaf?: number
}

export type MarkOperation = 'room.hide' | 'room.restore' | 'event.redact'
/** An act on an event or a room: an entry of its moderation log. */
export type ModerationAction = Span & {
  readonly id: string
  readonly op: string
  readonly room: Room
  readonly by: number
  readonly target?: string
  readonly reason?: string
}

export type DocVersion = Span & {
  readonly id: string
  readonly by: number
  readonly base: number
  readonly signedText: string
  readonly text: string
}
export type Doc = {
  readonly id: string
  readonly owner: number
  readonly room: Room | undefined
  readonly isUnlisted: boolean
  readonly versions: Map<number, DocVersion>
}

export type Receiver = {
  readonly id: string
  readonly url: string
  readonly owner: number
  readonly dedupe: boolean
  readonly posts: boolean
  /** By the number of the item: its body and the value of the header that names it. */
  readonly items: Map<number, { readonly body: string; readonly name: string | undefined }>
  /** Bodies whose answer was lost in a kill: stored once, or not at all. */
  readonly unknown: Set<string>
}

/** How a text was removed. */
export type Removal = { readonly reason: string; readonly by: 'author' | 'room' | 'operator' }

export class History {
  readonly events = new Map<string, SentEvent>()
  /** By room, in the order of the answers. */
  readonly byRoom = new Map<string, SentEvent[]>(rooms.map(({ name }) => [name, []]))
  /** By original: its later versions, in the order of the answers. */
  readonly edits = new Map<string, SentEvent[]>()
  readonly moderation: ModerationAction[] = []
  /** By original, by voter. */
  readonly votes = new Map<string, Map<number, number>>()
  /** By room: members other than its owner. */
  readonly members = new Map<string, Set<number>>(rooms.map(({ name }) => [name, new Set()]))
  readonly docs: Doc[] = []
  readonly receivers: Receiver[] = []
  /** Refusals by operation and code. */
  readonly refused = new Map<string, number>()
  acknowledged = 0
  /** Answers that came only when the command was sent again. */
  retried = 0
  repeated = 0

  addEvent(event: SentEvent): void {
    if (this.events.has(event.id)) throw new Error(`${event.id} was acknowledged before`)
    this.events.set(event.id, event)
    this.byRoom.get(event.room.name)!.push(event)
    if (event.original === undefined) return
    const edits = this.edits.get(event.original)
    if (edits === undefined) this.edits.set(event.original, [event])
    else edits.push(event)
  }

  /** Everything posted in a room, as it must be listed there: without gaps. */
  inOrder(room: string): SentEvent[] {
    const all = [...this.byRoom.get(room)!].sort((a, b) => a.seq - b.seq)
    all.forEach(({ id, seq }, n) => {
      if (seq !== n + 1) throw new Error(`${room}: after ${n} comes ${seq} (${id})`)
    })
    checkTimes(all, `events of ${room}`)
    return all
  }

  /** The newest version of an original. */
  newest(original: SentEvent): SentEvent {
    return (this.edits.get(original.id) ?? []).reduce((a, b) => (b.seq > a.seq ? b : a), original)
  }

  votesOf(original: string): { up: number; down: number; score: number } {
    const values = [...(this.votes.get(original)?.values() ?? [])]
    const up = values.filter((value) => value === 1).length
    const down = values.filter((value) => value === -1).length
    return { up, down, score: up - down }
  }
}

/** In the order of the board nothing comes after something that was sent only after it was answered. */
export function checkTimes(things: readonly Span[], what: string): void {
  let newest = 0
  for (const { sent, answered } of things) {
    if (answered < newest)
      throw new Error(`${what}: answered at ${answered}, and stands behind what was sent at ${newest}`)
    newest = Math.max(newest, sent)
  }
}
