/**
 * The texts of one page: they are gathered while the page is put together, rendered in one go, and bounded in all, so that no page
 * is larger or costs more than is known. What finds no room is shown in part, with a link to the whole.
 */
import type { Html } from './pieces/html.ts'
import { inPart, nodesIn, type RenderItem } from './pieces/rendered.ts'
import type { Costed, Rendered } from './renderer.ts'

/** In the order of the items. */
export type RenderTexts = (items: readonly Costed[]) => Promise<readonly Rendered[]>

/** Nodes of all texts of a page: a fifth of a second of work at most, on a thread that other requests do not wait for. */
export const pageNodesMax = 30_000
/** Characters of HTML of all texts of a page: with what stands around them it can be kept (limits.ts, pageCacheBytes). */
export const pageHtmlCharsMax = 600_000
/** Characters of HTML of a text that is shown in part, and where the page is full: its first words are always there. */
const partCharsMax = 2_000
const partCharsMin = 300

const reasons = {
  full: 'The page has reached its size limit.',
  busy: 'The board is busy rendering other texts: load the page again in a moment.',
  slow: 'It takes too long to render.',
}

type Wanted = {
  readonly item: RenderItem
  /** What the page is about: it finds room before all others. */
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

  /** `onBusy`: a text is shown in part that another moment may show whole. */
  constructor(render: RenderTexts, onBusy: () => void) {
    this.#render = render
    this.#onBusy = onBusy
  }

  /** What is asked for in one turn is rendered together. */
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
        .filter((each) => this.#mayCost(each))
      const made = await this.#render(fitting)
      for (const [n, { item, show }] of fitting.entries()) show(this.#within(item, made[n]!))
    } catch (error) {
      for (const { fail } of wanted) fail(error)
    }
  }

  /** Takes it from what the page may cost; false: it is shown in part. */
  #mayCost({ item, nodes, show }: Wanted & Costed): boolean {
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
