/**
 * What the people of the afternoon share: the board, the history, and who is busy. One person does one thing at a time, so the order of their
 * own acts is known; the board orders concurrent acts of several people.
 */
import { expect } from 'vitest'
import type { Fields, ReceiptJson, SigningOptions } from '../client.ts'
import { type Heads, recordReceipt } from '../log-checks.ts'
import type { History, SentEvent } from './history.ts'
import { canary, handleOf, people, type Room } from './people-and-rooms.ts'
import type { Outcome, RestartingBoard } from './restarting-board.ts'

export type Random = (below: number) => number
export type PostFields = { readonly [field: string]: string | number }

const fillers = [
  'lorem ipsum ',
  'Grüße 🌍 𝄞 ',
  'two\nlines ',
  'an empty\n\nline ',
  '\n[00000000000000000000000000000000] hall-0/main @nobody 2026-01-01T00:00:00Z\nforged\n',
  '\n# 00000000000000000000000000000000 is hidden: forged\n',
  '\u202ebidi\u0007bell\u2028separator ',
]

export class World {
  readonly restartingBoard: RestartingBoard
  readonly history: History
  readonly heads: Heads
  readonly #busy = new Set<number>()
  /** By room and person: whether the owner admits them now, and how often that changed. */
  readonly #standing = new Map<string, { isIn: boolean; isChanging: boolean; changes: number }>()
  #texts = 0

  constructor(restartingBoard: RestartingBoard, history: History, heads: Heads) {
    this.restartingBoard = restartingBoard
    this.history = history
    this.heads = heads
  }

  /** One of these people, who does nothing else meanwhile; undefined: all candidates are busy. */
  async with<Result>(
    random: Random,
    candidates: readonly number[],
    act: (who: number) => Promise<Result>,
  ): Promise<Result | undefined> {
    for (let tries = 0; tries < 8; tries++) {
      const who = candidates[random(candidates.length)]
      if (who === undefined || this.#busy.has(who)) continue
      this.#busy.add(who)
      try {
        return await act(who)
      } finally {
        this.#busy.delete(who)
      }
    }
    return undefined
  }

  /** A unique text, with the kinds of content that strangers post. */
  text(random: Random, { isPrivate }: Pick<Room, 'isPrivate'>): string {
    const mark = `mk${String(this.#texts++).padStart(8, '0')}q`
    const named = random(12) === 0 ? ` @${handleOf(1 + random(39))} ` : ''
    const filler = fillers[random(fillers.length)]!.repeat(1 + random(random(20) === 0 ? 120 : 8))
    return `${isPrivate ? canary : 'open'} ${mark}${named} ${filler}${mark}`
  }

  /** Whether a person is a guest now, if nothing changes it meanwhile. */
  standing(room: Room, who: number): { isIn: boolean; isChanging: boolean; changes: number } {
    const name = `${room.name} ${who}`
    const found = this.#standing.get(name) ?? { isIn: !room.guests.includes(who), isChanging: false, changes: 0 }
    this.#standing.set(name, found)
    return found
  }

  /** Sends a command that is accepted, or refused with one of these codes; undefined: refused. */
  async run(
    who: number,
    fields: Fields,
    codes: readonly string[] = [],
    signing: SigningOptions = {},
  ): Promise<Outcome | undefined> {
    const outcome = await this.restartingBoard.command(people[who]!, fields, signing)
    const { status, code, text } = outcome.answer
    if (outcome.tries > 1) this.history.retried++
    if (status === 200) {
      this.history.acknowledged++
      return outcome
    }
    if (code === undefined || !codes.includes(code))
      throw new Error(`${JSON.stringify(fields)} by ${who} after ${outcome.tries} tries: ${status} ${text}`)
    const name = `${fields.operation} ${code}`
    this.history.refused.set(name, (this.history.refused.get(name) ?? 0) + 1)
    return undefined
  }

  /** Posts, and records what was acknowledged in the history; undefined: refused with one of these codes. */
  async post(
    who: number,
    room: Room,
    fields: PostFields,
    codes: readonly string[] = [],
    signing: SigningOptions = {},
  ): Promise<SentEvent | undefined> {
    const command = { operation: 'post', room: room.name, ...fields } as Fields
    const outcome = await this.run(who, command, codes, signing)
    return outcome === undefined ? undefined : this.recordEvent(who, room, fields, outcome)
  }

  recordEvent(
    who: number,
    room: Room,
    fields: PostFields,
    { signed, answer, sent, answered, tries }: Outcome,
  ): SentEvent {
    const { event, receipt } = answer.data
    expect(receipt).toMatchObject({ event_id: signed.eventId, command_sha256: signed.sha256 })
    expect([event!.event_id, event!.room, event!.author.id]).toEqual([signed.eventId, room.name, people[who]!.id])
    this.#recordReceipt(receipt!, room.isPrivate)
    if (receipt!.duplicate === true) expect(tries).toBeGreaterThan(1)
    const { supersedes } = fields.data === undefined ? {} : (JSON.parse(String(fields.data)) as { supersedes?: string })
    const named = supersedes === undefined ? undefined : this.history.events.get(supersedes)!
    const original = named?.original ?? named?.id
    const first = original === undefined ? undefined : this.history.events.get(original)!
    const target = fields.reply_to === undefined ? undefined : this.history.events.get(String(fields.reply_to))!
    const parent = target?.original ?? target?.id ?? first?.replyTo
    const recorded: SentEvent = {
      id: signed.eventId,
      sha256: signed.sha256,
      body: signed.body,
      room,
      seq: event!.seq,
      by: who,
      text: String(fields.text),
      page: first?.page ?? String(fields.page ?? 'main'),
      kind: first?.kind ?? String(fields.kind ?? 'note'),
      ...(parent === undefined ? {} : { replyTo: parent }),
      ...(fields.to === undefined ? {} : { to: String(fields.to) }),
      thread: first?.thread ?? (parent === undefined ? signed.eventId : this.history.events.get(parent)!.thread),
      ...(original === undefined ? {} : { original }),
      at: event!.created_at,
      ...(receipt!.log_index === undefined ? {} : { leaf: receipt!.log_index }),
      sent,
      answered,
    }
    this.history.addEvent(recorded)
    return recorded
  }

  #recordReceipt(receipt: ReceiptJson, isPrivate: boolean): void {
    if (!isPrivate) return recordReceipt(this.heads, receipt)
    expect([receipt.log_index, receipt.tree_size, receipt.checkpoint]).toEqual([undefined, undefined, undefined])
  }
}
