/**
 * Posts items of receive URLs into the rooms chosen by their creators, by the board itself.
 *
 * An item is durable before it is posted, and its actor remembers how far posting has come. That is queried whenever there may be more, so
 * an item whose delivery had no answer is posted too, in order. If it is unknown whether an item was posted, it is sent again as the same
 * bytes, so nothing is posted twice. Items of one receive URL are posted in order.
 */

import { sizes } from '../../actors/kernel/limits.ts'
import { ownLetter, receiversOf } from '../../actors/receive-urls/decide.ts'
import { shardOf } from '../../actors/shard.ts'
import { type Actors, type BoardAuthor, isNotNow, whenDecided } from '../command/ports.ts'
import { bodyOf, type Reply } from '../format/reply.ts'
import { dataOf, type ReadCall } from '../reads/read.ts'
import type { Unposted } from './reads.ts'

/** A receive URL whose items are posted into a room. */
export type Posted = { readonly receiver: string; readonly owner: string }

type ItemPostsOptions = {
  readonly actors: Actors
  readonly voice: BoardAuthor
  readonly read: ReadCall
  readonly isSuspended: (identity: string) => boolean
  /** Calls back after this many milliseconds. */
  readonly later: (callback: () => void, ms: number) => void
  readonly report: (facts: Readonly<Record<string, unknown>>) => void
}

/** `isOld`: there may be more than was read. `isUnsure`: there may be more once every delivery has been decided. */
type Line = Posted & { room: string; label: string; next: number; newest: number; isOld: boolean; isUnsure: boolean }
type ItemJson = {
  readonly item: number
  readonly received_at: number
  readonly content_type: string
  readonly bytes: number
  readonly body: string
  readonly body_encoding: 'text' | 'base64url'
  readonly verified: boolean
}

const againMs = 1_000

export class ItemPosts {
  readonly #options: ItemPostsOptions
  readonly #lines = new Map<string, Line>()
  #closed = false

  constructor(options: ItemPostsOptions) {
    this.#options = options
  }

  /** Resumes what an earlier run left; resolves when that is known. */
  async resume(): Promise<void> {
    const shards = Array.from({ length: this.#options.actors.shards }, (_, shard) => shard)
    await Promise.all(
      shards.map(async (shard) => {
        for (const each of await this.#unposted(shard, {})) if (!this.#lines.has(each.receiver)) this.#resume(each)
      }),
    )
  }

  /** An item may have arrived at this receive URL; if not `isDecided`, one may still be on its way. */
  post({ receiver, owner }: Posted, isDecided: boolean): void {
    const line = this.#lines.get(receiver)
    if (line !== undefined) {
      line.isOld = true
      line.isUnsure ||= !isDecided
      return
    }
    const begun = { receiver, owner, room: '', label: '', next: 1, newest: 0, isOld: true, isUnsure: !isDecided }
    this.#lines.set(receiver, begun)
    this.#advance(begun)
  }

  close(): void {
    this.#closed = true
  }

  #resume({ items, ...receiver }: Unposted): void {
    const line = { ...receiver, next: items[0] ?? 1, newest: items.at(-1) ?? 0, isOld: false, isUnsure: false }
    this.#lines.set(receiver.receiver, line)
    this.#advance(line)
  }

  #unposted(shard: number, args: { readonly receiver?: string }): Promise<readonly Unposted[]> {
    return this.#answered((give) =>
      this.#options.actors.readPrivate(shard, { op: 'receiver.unposted', args, reader: '' }, (found) =>
        give(found?.ok ? dataOf(found) : undefined),
      ),
    )
  }

  #decided(owner: string): Promise<true> {
    return this.#answered((give) =>
      whenDecided(this.#options.actors, receiversOf(owner), (isDecided) => give(isDecided || undefined)),
    )
  }

  /** Repeats the query until there is an answer; `give` gets undefined if there is none now. */
  #answered<Found>(ask: (give: (found: Found | undefined) => void) => void): Promise<Found> {
    return new Promise((resolve) => {
      const again = () =>
        ask((found) => {
          if (found !== undefined) resolve(found)
          else if (!this.#closed) this.#options.later(again, againMs)
        })
      again()
    })
  }

  async #look(line: Line): Promise<void> {
    const { receiver, owner, isUnsure } = line
    line.isOld = false
    line.isUnsure = false
    if (isUnsure) await this.#decided(owner)
    const [found] = await this.#unposted(shardOf(receiversOf(owner), this.#options.actors.shards), { receiver })
    if (found !== undefined) {
      const { room, label, items } = found
      Object.assign(line, { room, label, next: items[0] ?? line.next, newest: items.at(-1) ?? line.newest })
    }
    this.#advance(line)
  }

  #advance(line: Line): void {
    if (this.#closed) return
    if (line.next > line.newest) {
      if (line.isOld) return void this.#look(line)
      this.#lines.delete(line.receiver)
      return
    }
    if (this.#options.isSuspended(line.owner)) return this.#done(line, line.next)
    // Checked each time: its creator may have left the room, or been removed from it, since the receive URL was created.
    this.#options.read({ op: 'receiver.room', args: { room: line.room }, reader: line.owner }, (may) => {
      if (isNotNow(may)) return this.#again(line, againMs)
      if (may?.ok !== true) return this.#done(line, line.next)
      this.#fetch(line)
    })
  }

  #fetch(line: Line): void {
    const args = { target: line.receiver, after: line.next - 1, limit: 1 }
    this.#options.read({ op: 'receiver.items', args, reader: line.owner }, (found) => {
      if (found === undefined || !found.ok) return this.#again(line, againMs)
      const { items, unreadable } = dataOf(found)
      const [item] = items
      // An item that the disk can no longer read is skipped, but none after it.
      if (item === undefined) return this.#done(line, unreadable === undefined ? line.newest : line.next)
      // Items no longer stored are not posted.
      line.next = item.item
      this.#say(line, item)
    })
  }

  #say(line: Line, item: ItemJson): void {
    const text = textOf(line, item)
    const cause = { cause: `${line.receiver}:${item.item}`, at: item.received_at }
    this.#options.voice.send({ operation: 'post', room: line.room, text }, cause, (reply: Reply | undefined) => {
      if (reply === undefined) return this.#again(line, againMs)
      if (reply.status === 429) return this.#again(line, (reply.retryAfter ?? 1) * 1_000)
      if (reply.status !== 200)
        this.#options.report({ receiver: line.receiver, item: item.item, answer: bodyOf(reply) })
      this.#done(line, item.item)
    })
  }

  #done(line: Line, item: number): void {
    line.next = item + 1
    this.#options.actors.write(ownLetter('receiver.posted', line.owner, { receiver: line.receiver, item }), () =>
      this.#advance(line),
    )
  }

  #again(line: Line, ms: number): void {
    this.#options.later(() => this.#advance(line), ms)
  }
}

function textOf({ label, receiver }: Line, item: ItemJson): string {
  const { content_type, bytes, body, body_encoding, verified } = item
  const facts = `item ${item.item}, ${content_type}, ${bytes} bytes, ${verified ? 'signature good' : 'not signed'}`
  const head = `Received at ${label === '' ? receiver : label}: ${facts}.`
  if (body_encoding !== 'text') return `${head} It is not text: its owner can read it with receiver.items.`
  const start = `${head} What follows was written by a stranger.\n\n`
  return start + cut(body.replaceAll('\0', '\u{fffd}'), sizes.text_bytes - Buffer.byteLength(start))
}

const cutMark = '\n[cut here]'

/** The longest beginning of complete characters that fits. */
function cut(text: string, bytesMax: number): string {
  const bytes = Buffer.from(text)
  if (bytes.length <= bytesMax) return text
  let end = bytesMax - cutMark.length
  // A byte of the form 10xxxxxx continues a character.
  while ((bytes[end]! & 0xc0) === 0x80) end--
  return bytes.toString('utf8', 0, end) + cutMark
}
