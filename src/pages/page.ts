/**
 * A page: one declaration in its own file, listed in `src/board/pages.ts`. It queries the board as the API does, and returns parts that the
 * layout arranges. A page never sees a socket, and waits only for reads.
 *
 * The dependencies of each read are recorded, so that the bytes of a page are cached exactly as long as they are valid.
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

/** The parts of a page; the layout arranges them. */
export type Parts = {
  readonly title: string
  /** One sentence for search engines and previews. */
  readonly description?: string
  /** The tab of the main navigation that this page belongs to. */
  readonly section?: Section
  /** The top of the main column, with the page's only h1. */
  readonly head: Html
  readonly main: Html
  /** Next to the main column; below it on a phone. */
  readonly aside?: Html
  /** Between head and main: tabs, filters. */
  readonly bar?: Html
  /** Our modules to load, by name. */
  readonly scripts?: readonly string[]
  /** Path of a preview picture, if the page has its own. */
  readonly preview?: string
  /** Feeds and other forms of the same thing: rel, type, title, path. */
  readonly links?: readonly (readonly [rel: string, type: string, title: string, href: string])[]
  /** Whether search engines may list it. */
  readonly isListed?: boolean
}

export type Section = 'talk' | 'rooms' | 'work' | 'tools' | 'log' | 'docs'

/** A page in the layout, or bytes of another type, such as a picture. */
export type Shown =
  | { readonly kind: 'page'; readonly status?: number; readonly parts: Parts }
  | { readonly kind: 'bytes'; readonly type: string; readonly body: Uint8Array }

export type Page = {
  /** Like `/room/{room}`; the value of `{id...}` may contain slashes. */
  readonly path: string
  /** What it shows, for the list of pages in the docs. */
  readonly about: string
  /** Query parameters it takes; others have no effect and are left out of the cache key. */
  readonly query?: readonly string[]
  /** API names of some parameters, which are accepted too. */
  readonly alsoCalled?: Readonly<Record<string, string>>
  /** For a feed, its type: any site may read it. */
  readonly feed?: string
  /** The page searches; each network has one search at a time. */
  readonly isSearch?: true
  show(ask: Ask, request: PageRequest): Promise<Shown> | Shown
}

type Figures = Readonly<Record<string, number>>

export type AskOptions = {
  readonly read: ReadCall
  /** What is wrong with arguments from an address; undefined if nothing is. */
  readonly fault: (op: string, args: ReadRequest['args']) => Refusal | undefined
  readonly figures: (answer: (stats: Figures | undefined) => void) => void
  /** Renders texts of users as HTML; only this page waits for it. */
  readonly render: RenderTexts
  /** Unix seconds. */
  readonly now: () => number
  readonly board: AboutBoard
  /** Newest public change when the page was requested; what it shows is at least as new. */
  readonly change: number
}

/** What every page knows about the board. */
export type AboutBoard = {
  /** Public address, without a trailing slash. */
  readonly address: string
  readonly name: string
  /** The purpose of the board, in one sentence. */
  readonly about: string | undefined
  /** How to reach its host: an email address, or an https address. */
  readonly contact: string | undefined
  readonly serviceId: string
  /** The board's own identity, which signs its notices and owns its first rooms. */
  readonly identity: { readonly id: string; readonly publicKey: string }
  readonly release: string
  readonly origin: string
  readonly vkey: string
  /** Every size, rate and quota by name, as /capabilities shows them; null: no limit. */
  readonly limits: () => Readonly<Record<string, number | null>>
  /** The newest head that completed the witness round, with all of its signatures. */
  readonly published: () => string
}

/** The request is refused, or the thing does not exist: the route answers with a page that says so. */
export class Refused extends Error {
  readonly refusal: Refusal
  constructor(refusal: Refusal) {
    super(refusal.message)
    this.refusal = refusal
  }
}

/** The thing has moved permanently to another address. */
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
  /** The one room; undefined: the whole board; null: nothing. */
  readonly room: string | undefined | null
  /** Unix seconds at which they become stale; 0: never. */
  readonly until: number
}

/** A page that shows a text in part because the board was busy is rendered again after this long. */
const busySeconds = 2

/** The board's interface to one page. */
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

  /** Unix seconds; the page becomes stale after `seconds`. */
  nowFor(seconds: number): number {
    const now = this.#options.now()
    this.#old(now + seconds)
    return now
  }

  /** Data of a read operation. Throws Refused if the board refuses. */
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

  /** The same, or undefined if no reader can see it; any later change may make it appear. */
  async find<Name extends AnyReadName>(op: Name, args: ReadRequest['args'] = {}): Promise<ResultOf<Name> | undefined> {
    try {
      return await this.read(op, args)
    } catch (error) {
      if (!(error instanceof Refused) || !['not_found', 'private_room'].includes(error.refusal.code)) throw error
      this.#room = undefined
      return undefined
    }
  }

  /** Counts of the board, at most a moment old. */
  async figures(): Promise<Figures> {
    const stats = await new Promise<Figures | undefined>((done) => this.#options.figures(done))
    if (stats === undefined) throw new Unanswered()
    this.#room = undefined
    this.nowFor(5)
    return stats
  }

  /** A user's text as HTML, or part of it if the page is full. */
  text(item: RenderItem): Promise<Html> {
    return this.#texts.show(item, false)
  }

  /** The same for the main text of the page, which gets space first. */
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
