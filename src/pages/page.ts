/**
 * A page: one declaration in a file of its own, listed in `src/board/pages.ts`. It asks the board what the API asks, and answers with parts
 * that the layout puts in their places. A page never sees a socket and never waits for anything but reads.
 *
 * What an answer depended on is noted while it is asked for, so that the bytes of a page are kept exactly as long as they are right.
 */

import type { Refusal } from '../../actors/kernel/refusals.ts'
import type { AnyReadName } from '../../actors/operations.ts'
import { type AnswerOf, dataOf, type ReadAnswer, type ReadCall, type ReadRequest, unending } from '../reads/read.ts'
import type { ResultOf } from './data.ts'
import { PageTexts, type RenderTexts } from './page-texts.ts'
import type { Html } from './pieces/html.ts'
import type { RenderItem } from './pieces/rendered.ts'

export type PageRequest = {
  /** Path of the page with its parameters filled in. */
  readonly path: string
  /** Values of `{name}` in the page's path. */
  readonly parameters: Readonly<Record<string, string>>
  readonly query: ReadonlyMap<string, string>
}

/** The places of a page; the layout decides where they stand. */
export type Parts = {
  readonly title: string
  /** One sentence for search engines and previews. */
  readonly description?: string
  /** The tab of the main navigation that this page belongs to. */
  readonly section?: Section
  /** What stands above everything in the main column, with the page's only h1. */
  readonly head: Html
  readonly main: Html
  /** Beside the main column; below it on a phone. */
  readonly aside?: Html
  /** Under the head, over main: tabs, filters. */
  readonly bar?: Html
  /** Modules of ours to load, by name. */
  readonly scripts?: readonly string[]
  /** Path of a preview picture, where the page has its own. */
  readonly preview?: string
  /** Feeds and other forms of the same thing: rel, type, title, path. */
  readonly links?: readonly (readonly [rel: string, type: string, title: string, href: string])[]
  /** Search engines may list it. */
  readonly isListed?: boolean
}

export type Section = 'talk' | 'rooms' | 'work' | 'tools' | 'log' | 'docs'

/** A page in the layout; or bytes of another kind, such as a picture. */
export type Shown =
  | { readonly kind: 'page'; readonly status?: number; readonly parts: Parts }
  | { readonly kind: 'bytes'; readonly type: string; readonly body: Uint8Array }

export type Page = {
  /** As `/room/{room}`; what stands for `{id...}` may hold slashes. */
  readonly path: string
  /** What it shows, for the list of pages in the docs. */
  readonly about: string
  /** Query parameters it takes; any other is left out of its cache's key and has no effect. */
  readonly query?: readonly string[]
  /** How the API calls some of them: they are taken by that name too. */
  readonly alsoCalled?: Readonly<Record<string, string>>
  /** It is a feed, of this type: any site may read it. */
  readonly feed?: string
  /** It searches, which each network does one at a time. */
  readonly isSearch?: true
  show(ask: Ask, request: PageRequest): Promise<Shown> | Shown
}

type Figures = Readonly<Record<string, number>>

export type AskOptions = {
  readonly read: ReadCall
  /** What is wrong with arguments that came out of an address; undefined: nothing. */
  readonly fault: (op: string, args: ReadRequest['args']) => Refusal | undefined
  readonly figures: (answer: (stats: Figures | undefined) => void) => void
  /** Makes HTML of texts of users, where only this page waits for it. */
  readonly render: RenderTexts
  /** Unix seconds. */
  readonly now: () => number
  readonly board: AboutBoard
  /** Newest public change when the page was asked for: what it shows is not older. */
  readonly change: number
}

/** What every page knows of the board. */
export type AboutBoard = {
  /** Public address, without a slash at its end. */
  readonly address: string
  readonly name: string
  /** What it is for, in one sentence. */
  readonly about: string | undefined
  /** How to reach who runs it: an email address, or an https address. */
  readonly contact: string | undefined
  readonly serviceId: string
  /** The board's own, which signs its notices and owns its first rooms. */
  readonly identity: { readonly id: string; readonly publicKey: string }
  readonly release: string
  readonly origin: string
  readonly vkey: string
  /** Every size, rate and quota by name, as /capabilities shows them; null: no limit. */
  readonly limits: () => Readonly<Record<string, number | null>>
  /** The newest head that went through the witness round, with all who signed it. */
  readonly published: () => string
}

/** What was asked for is refused or not there: the route answers it with a page that says so. */
export class Refused extends Error {
  readonly refusal: Refusal
  constructor(refusal: Refusal) {
    super(refusal.message)
    this.refusal = refusal
  }
}

/** What was asked for has another address, for good. */
export class Moved extends Error {
  readonly path: string
  constructor(path: string) {
    super(`moved to ${path}`)
    this.path = path
  }
}

/** No answer came; a repeated request may get one. */
export class Unanswered extends Error {}

/** What the bytes of a page depend on. */
type Scope = {
  /** The one room; undefined: the whole board; null: nothing at all. */
  readonly room: string | undefined | null
  /** Unix seconds from which on they are old; 0: never. */
  readonly until: number
}

/** A page that shows a text in part because the board was busy is made again so soon. */
const busySeconds = 2

/** The board as one page asks it. */
export class Ask {
  readonly board: AboutBoard
  readonly change: number
  readonly #options: AskOptions
  readonly #texts: PageTexts
  #room: string | undefined | null = null
  #until = unending

  constructor(options: AskOptions) {
    this.#options = options
    this.#texts = new PageTexts(options.render, () => this.nowFor(busySeconds))
    this.board = options.board
    this.change = options.change
  }

  get scope(): Scope {
    return { room: this.#room, until: this.#until }
  }

  /** Unix seconds; the page is requested again after `seconds`. */
  nowFor(seconds: number): number {
    const now = this.#options.now()
    this.#old(now + seconds)
    return now
  }

  /** Data of a read operation. Throws Refused where the board refuses. */
  async read<Name extends AnyReadName>(op: Name, args: ReadRequest['args'] = {}): Promise<ResultOf<Name>> {
    const fault = this.#options.fault(op, args)
    if (fault !== undefined) throw new Refused(fault)
    const answer = await new Promise<ReadAnswer<AnswerOf<Name>> | undefined>((done) =>
      this.#options.read({ op, args, reader: '' }, done),
    )
    if (answer === undefined) throw new Unanswered()
    if (!answer.ok) throw new Refused('refusal' in answer ? answer.refusal : answer.absent)
    this.#room = this.#room === null || this.#room === answer.room ? answer.room : undefined
    if (answer.until !== unending) this.#old(answer.until)
    return dataOf(answer) as ResultOf<Name>
  }

  /** The same, or undefined where there is none for all readers; what is not there now may be there after any change. */
  async find<Name extends AnyReadName>(op: Name, args: ReadRequest['args'] = {}): Promise<ResultOf<Name> | undefined> {
    try {
      return await this.read(op, args)
    } catch (error) {
      if (!(error instanceof Refused) || !['not_found', 'private_room'].includes(error.refusal.code)) throw error
      this.#room = undefined
      return undefined
    }
  }

  /** Counts of the board; a moment old at most. */
  async figures(): Promise<Figures> {
    const stats = await new Promise<Figures | undefined>((done) => this.#options.figures(done))
    if (stats === undefined) throw new Unanswered()
    this.#room = undefined
    this.nowFor(5)
    return stats
  }

  /** A text of a user as HTML, or a part of it where the page is full. */
  text(item: RenderItem): Promise<Html> {
    return this.#texts.show(item, false)
  }

  /** The same of what the page is about: it finds room first. */
  mainText(item: RenderItem): Promise<Html> {
    return this.#texts.show(item, true)
  }

  #old(at: number): void {
    if (this.#until === unending || at < this.#until) this.#until = at
  }
}

export function shown(parts: Parts, status?: number): Shown {
  return { kind: 'page', parts, ...(status === undefined ? {} : { status }) }
}
