/**
 * The texts of one page: they are collected while the page is assembled, rendered together, and bounded in total, so that the size and cost
 * of a page are bounded. A text that does not fit is shown in part, with a link to the whole.
 */
import type { Html } from './pieces/html.ts'
import { inPart, nodesIn, type RenderItem } from './pieces/rendered.ts'
import type { Costed, Rendered } from './renderer.ts'

/** In the order of the items. */
export type RenderTexts = (items: readonly Costed[]) => Promise<readonly Rendered[]>

/** Nodes of all texts of a page: at most a fifth of a second of work, on a thread that other requests do not wait for. */
export const pageNodesMax = 30_000
/** HTML characters of all texts of a page: with the rest of the page it still fits the cache (limits.ts, pageCacheBytes). */
export const pageHtmlCharsMax = 600_000
/** HTML characters of a text that is shown in part, and the minimum on a full page: its first words are always there. */
const partCharsMax = 2_000
const partCharsMin = 300

const reasons = {
  full: 'The page has reached its size limit.',
  busy: 'The board is busy rendering other texts: load the page again in a moment.',
  slow: 'It takes too long to render.',
}

type Wanted = {
  readonly item: RenderItem
  /** The main text of the page, which gets space before all others. */
  readonly isMain: boolean
  readonly show: (shown: Html) => void
  readonly fail: (error: unknown) => void
}

export class PageTexts {
  readonly #render: RenderTexts
  readonly #onBusy: () => void
  #wanted: Wanted[] = []
  #nodesLeft = pageNodesMax
  #charsLeft = pageHtmlCharsMax

  /** `onBusy`: called if a text is shown in part that could be shown whole a moment later. */
  constructor(render: RenderTexts, onBusy: () => void) {
    this.#render = render
    this.#onBusy = onBusy
  }

  /** Texts requested in one turn are rendered together. */
  show(item: RenderItem, isMain: boolean): Promise<Html> {
    return new Promise((show, fail) => {
      if (this.#wanted.length === 0) queueMicrotask(() => void this.#gathered())
      this.#wanted.push({ item, isMain, show, fail })
    })
  }

  async #gathered(): Promise<void> {
    const wanted = this.#wanted.sort((a, b) => Number(b.isMain) - Number(a.isMain))
    this.#wanted = []
    try {
      const fitting = wanted
        .map((each) => ({ ...each, nodes: nodesIn(each.item) }))
        .filter((each) => this.#fitsBudget(each))
      const made = await this.#render(fitting)
      for (const [n, { item, show }] of fitting.entries()) show(this.#within(item, made[n]!))
    } catch (error) {
      for (const { fail } of wanted) fail(error)
    }
  }

  /** Deducts the cost of a text from the page's budget; false if the text is shown in part instead. */
  #fitsBudget({ item, nodes, show }: Wanted & Costed): boolean {
    if (nodes > this.#nodesLeft) {
      show(this.#part(item, 'full'))
      return false
    }
    this.#nodesLeft -= nodes
    return true
  }

  #within(item: RenderItem, made: Rendered): Html {
    if (made === 'busy') this.#onBusy()
    if (typeof made === 'string') return this.#part(item, made)
    if (made.text.length > this.#charsLeft) return this.#part(item, 'full')
    this.#charsLeft -= made.text.length
    return made
  }

  #part(item: RenderItem, why: keyof typeof reasons): Html {
    const part = inPart(item, reasons[why], Math.max(partCharsMin, Math.min(partCharsMax, this.#charsLeft)))
    this.#charsLeft = Math.max(0, this.#charsLeft - part.text.length)
    return part
  }
}
