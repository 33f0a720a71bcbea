/**
 * Renders untrusted Markdown (markdown-it, CommonMark and tables): HTML is not passed through, links give their targets nothing, and
 * pictures become links, because nothing is loaded from elsewhere. Headings start below those of the page. Loaded with the first document
 * shown.
 *
 * The cost of a text is bounded before it is parsed: by its marks and lines, and by the cells of its tables. Rows are padded to the columns
 * of their table, so without a bound, a thousand columns and rows of two characters would create a cell for every two characters.
 */
import type { MarkdownIt } from 'markdown-it'
import { addressOf, attribute, escaped, type Html, html, trusted } from './html.ts'

/** Normal Markdown stays far below these; a text of nothing but marks would keep its thread busy for a long time. */
export const marksMax = 6_000
export const linesMax = 3_000
/** Cells of all tables of one text: 500 rows of eight columns. */
export const cellsMax = 4_000

type StateBlock = Parameters<Parameters<MarkdownIt['block']['ruler']['before']>[2]>[0]
/** The remaining cells for the tables of one text. */
type Env = { cellsLeft: number }

let loading: Promise<MarkdownIt> | undefined

export async function markdown(text: string): Promise<Html> {
  if (marksIn(text) > marksMax || linesIn(text) > linesMax)
    return html`<p class="note">It has too much markup to be rendered: shown verbatim.</p><p class="text">${text}</p>`
  loading ??= load()
  const renderer = await loading
  const env: Env = { cellsLeft: cellsMax }
  const tokens = renderer.parse(text, env)
  // The page has the first heading; skipped levels must not leave a gap in the outline.
  let level = 1
  for (const token of tokens) {
    if (token.type === 'heading_open') level = Math.min(Number(token.tag.slice(1)) + 1, level + 1, 6)
    if (token.type === 'heading_open' || token.type === 'heading_close') token.tag = `h${level}`
  }
  return trusted(renderer.renderer.render(tokens, renderer.options, env))
}

/** By character: 1 if it may begin a construct, so that the parser has to look. */
const isMark = Uint8Array.from({ length: 128 }, (_, code) => Number('[]*_`~|<\\!&'.includes(String.fromCharCode(code))))

export function marksIn(text: string): number {
  let marks = 0
  for (let at = 0; at < text.length; at++) marks += isMark[text.charCodeAt(at)] ?? 0
  return marks
}

export function linesIn(text: string): number {
  let lines = 0
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) lines++
  return lines
}

/** A line under the header of a table, also in a quote or a list; other lines may look the same. */
const delimiterRow = /^[\s>]*[|:-][\s|:-]*$/
const blankRow = /^[\s>]*$/

/** Upper bound of the cells in the tables of a text: at least as many as the parser creates. */
export function cellsIn(text: string): number {
  if (!text.includes('|')) return 0
  const lines = text.split('\n')
  let cells = 0
  let columns = 0
  for (const line of lines) {
    if (blankRow.test(line)) columns = 0
    // The header is the line above, and each row of a table may begin another one.
    else if (delimiterRow.test(line)) {
      columns += columnsIn(line)
      cells += columns
    }
    cells += columns
  }
  return cells
}

/** Each column has one run of dashes. */
function columnsIn(delimiters: string): number {
  return delimiters.match(/-+/g)?.length ?? 0
}

async function load(): Promise<MarkdownIt> {
  const { default: Markdown } = await import('markdown-it')
  const renderer = new Markdown({ html: false, linkify: false, typographer: false, maxNesting: 50 })
  renderer.validateLink = (address) => addressOf(address) !== undefined
  renderer.block.ruler.before('table', 'large_table', largeTable)
  const { rules } = renderer.renderer
  rules.large_table = (tokens, at) =>
    html`<p class="note">Shown in part: this table has too many cells to be rendered, and is shown verbatim.</p><pre tabindex="0"><code>${tokens[at]!.content}</code></pre>\n`
      .text
  rules.text = (tokens, at) => escaped(tokens[at]!.content)
  rules.code_inline = (tokens, at) => `<code>${escaped(tokens[at]!.content)}</code>`
  rules.code_block = (tokens, at) => `<pre tabindex="0"><code>${escaped(tokens[at]!.content)}</code></pre>\n`
  rules.fence = rules.code_block
  rules.link_open = (tokens, at) => {
    const href = addressOf(String(tokens[at]!.attrGet('href') ?? '')) ?? ''
    return `<a href="${attribute(href)}" rel="nofollow ugc noopener noreferrer">`
  }
  rules.image = (tokens, at) => {
    const token = tokens[at]!
    const href = addressOf(String(token.attrGet('src') ?? '')) ?? ''
    const words = token.content === '' ? 'picture' : token.content
    return `<a href="${attribute(href)}" rel="nofollow ugc noopener noreferrer">${escaped(`🖼 ${words}`)}</a>`
  }
  // Column alignment would be an inline style, which our pages do not allow.
  for (const cell of ['th', 'td'] as const) rules[`${cell}_open`] = () => (cell === 'th' ? '<th scope="col">' : '<td>')
  rules.table_open = () => '<section class="scroll" tabindex="0" aria-label="table"><table>\n'
  rules.table_close = () => '</table></section>\n'
  return renderer
}

/** Consumes a table that the parser's own rule would build, if too few cells are left for it. */
function largeTable(state: StateBlock, startLine: number, endLine: number, silent: boolean): boolean {
  const env = state.env as Env
  if (silent || startLine + 2 > endLine || !lineOf(state, startLine).includes('|')) return false
  const delimiters = lineOf(state, startLine + 1)
  if (!delimiterRow.test(delimiters)) return false
  let end = startLine + 2
  while (end < endLine && lineOf(state, end).trim() !== '') end++
  const cells = columnsIn(delimiters) * (end - startLine - 1)
  if (cells <= env.cellsLeft) {
    env.cellsLeft -= cells
    return false
  }
  const token = state.push('large_table', 'pre', 0)
  token.content = state.getLines(startLine, end, state.blkIndent, true)
  token.map = [startLine, end]
  state.line = end
  return true
}

function lineOf(state: StateBlock, line: number): string {
  return state.src.slice(state.bMarks[line]! + state.tShift[line]!, state.eMarks[line])
}
