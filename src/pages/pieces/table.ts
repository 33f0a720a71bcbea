/** Tables with several columns; on a phone, each row becomes a block with every cell under the name of its column. */
import { type Html, html, type Value } from './html.ts'

export type Column = { readonly name: string; readonly isNumber?: boolean }

/** `rows`: the cells of each, in order. `isNamed`: the first cell is the row's name. */
export function table(
  caption: string,
  columns: readonly Column[],
  rows: readonly (readonly Value[])[],
  isNamed = true,
): Html {
  const numeric = ({ isNumber }: Column) => isNumber === true && html` class="num"`
  const heads = columns.map((column) => html`<th scope="col"${numeric(column)}>${column.name}</th>`)
  const cell = (value: Value, at: number): Html =>
    at === 0 && isNamed
      ? html`<th scope="row">${value}</th>`
      : html`<td data-column="${columns[at]!.name}"${numeric(columns[at]!)}>${value}</td>`
  const lines = rows.map((cells) => html`<tr>${cells.map(cell)}</tr>`)
  return html`<section class="scroll stack" tabindex="0" aria-label="${caption}"><table><thead><tr>${heads}</tr></thead><tbody>${lines}</tbody></table></section>`
}
