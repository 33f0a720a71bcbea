/** Buffers a shard's news until its listener exists, and then passes it on in order. */
import type { ActorListener } from './actor-host.ts'
import type { ShardNews } from './private-news.ts'

export class BufferedNews implements ActorListener {
  readonly #kinds: ReadonlySet<ShardNews[0]>
  readonly #buffered: ((listener: ActorListener) => void)[] = []
  #listener: ActorListener | undefined

  constructor(kinds: readonly ShardNews[0][]) {
    this.#kinds = new Set(kinds)
  }

  passTo(listener: ActorListener): void {
    this.#listener = listener
    for (const pass of this.#buffered.splice(0)) pass(listener)
  }

  shardNews(shard: number, news: ShardNews): void {
    if (this.#kinds.has(news[0])) this.#pass((listener) => listener.shardNews?.(shard, news))
  }

  shardLost(shard: number): void {
    this.#pass((listener) => listener.shardLost?.(shard))
  }

  #pass(pass: (listener: ActorListener) => void): void {
    if (this.#listener === undefined) this.#buffered.push(pass)
    else pass(this.#listener)
  }
}
