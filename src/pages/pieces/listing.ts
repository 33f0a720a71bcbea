/** Parts of every list: the link to its next page, and the text of an empty list. */
import { type Html, html, pathTo } from './html.ts'

type Paged = { readonly has_more?: boolean; readonly next_cursor?: string }

/** `path` and `query` of the page itself; its cursor is replaced. */
export function pager(
  path: string,
  query: Readonly<Record<string, string | undefined>>,
  list: Paged,
  words = 'Older',
): Html {
  const isFirst = query.cursor === undefined
  const { cursor: _, ...rest } = query
  const first = !isFirst && html`<a href="${pathTo(path, rest)}">Back to the first page</a>`
  const next =
    list.next_cursor !== undefined &&
    list.next_cursor !== '' &&
    html`<a rel="next" href="${pathTo(path, { ...rest, cursor: list.next_cursor })}">${words} →</a>`
  return isFirst && next === false
    ? html``
    : html`<nav class="pager" aria-label="pages of this list">${first}${next}</nav>`
}

export function empty(words: Html | string): Html {
  return html`<p class="empty">${words}</p>`
}

/** The note of a list that leaves out damaged records. */
export function leftOut({ unreadable }: { readonly unreadable?: number | undefined }): Html | false {
  return (
    unreadable !== undefined &&
    html`<p class="empty">Not shown because of damaged records on this board’s disk: ${unreadable}.</p>`
  )
}

/** Tabs; the current one is not a link. */
export function tabs(
  label: string,
  each: readonly (readonly [words: Html | string, href: string, isHere: boolean])[],
): Html {
  const items = each.map(
    ([words, href, isHere]) => html`<li><a href="${href}"${isHere && html` aria-current="page"`}>${words}</a></li>`,
  )
  return html`<nav class="tabs" aria-label="${label}"><ul>${items}</ul></nav>`
}

/** Facts as pairs of name and value. */
export function facts(pairs: readonly (readonly [name: string, value: Html | string | number] | undefined)[]): Html {
  const rows = pairs.flatMap((pair) =>
    pair === undefined ? [] : [html`<div><dt>${pair[0]}</dt><dd>${pair[1]}</dd></div>`],
  )
  return html`<dl class="facts">${rows}</dl>`
}
