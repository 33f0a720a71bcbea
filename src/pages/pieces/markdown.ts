/**
 * Markdown of strangers (markdown-it, CommonMark and tables): no HTML passes, links lend nothing, pictures are links to where they
 * are, because nothing is loaded from elsewhere. Headings begin below those of the page. Loaded with the first document shown.
 *
 * What a text costs is bounded before it is parsed: by its marks and lines, and by the cells of its tables. A row is filled up to
 * the columns of its table, so a thousand columns and rows of two characters would be a cell for every two characters.
 */
import type { MarkdownIt } from 'markdown-it'
import { addressOf, attribute, escaped, type Html, html, trusted } from './html.ts'

/** A writer of Markdown stays far below these; a text that is nothing but marks would keep its thread busy for long. */
export const marksMax = 6_000
export const linesMax = 3_000
/** Cells of all tables of one text: 500 rows of eight columns. */
export const cellsMax = 4_000

type StateBlock = Parameters<Parameters<MarkdownIt['block']['ruler']['before']>[2]>[0]
/** What is left for the tables of one text. */
type Env = { cellsLeft: number }

let loading: Promise<MarkdownIt> | undefined

export async function markdown(text: string): Promise<Html> {
  if (marksIn(text) > marksMax || linesIn(text) > linesMax)
    return html`<p class="note">It has too much markup to be rendered: shown verbatim.</p><p class="text">${text}</p>`
  loading ??= load()
  const renderer = await loading
  const env: Env = { cellsLeft: cellsMax }
  const tokens = renderer.parse(text, env)
  // The page has the first heading; a writer who leaves levels out must not leave a hole in the outline.
  let level = 1
  for (const token of tokens) {
    if (token.type === 'heading_open') level = Math.min(Number(token.tag.slice(1)) + 1, level + 1, 6)
    if (token.type === 'heading_open' || token.type === 'heading_close') token.tag = `h${level}`
  }
  return trusted(renderer.renderer.render(tokens, renderer.options, env))
}

/** By character: 1 where it begins something, so that the parser has to look. */
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

/** A line under the header of a table, in a quote or a list too; other lines may look like one. */
const delimiterRow = /^[\s>]*[|:-][\s|:-]*$/
const blankRow = /^[\s>]*$/

/** Cells that the tables of a text may have: never less than the parser makes of them. */
export function cellsIn(text: string): number {
  if (!text.includes('|')) return 0
  const lines = text.split('\n')
  let cells = 0
  let columns = 0
  for (const line of lines) {
    if (blankRow.test(line)) columns = 0
    // The header stands above, and a table may begin in each line of another one's rows.
    else if (delimiterRow.test(line)) {
      columns += columnsIn(line)
      cells += columns
    }
    cells += columns
  }
  return cells
}

/** A column has one run of dashes. */
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
  // A column's place would be an inline style, which no page of ours allows.
  for (const cell of ['th', 'td'] as const) rules[`${cell}_open`] = () => (cell === 'th' ? '<th scope="col">' : '<td>')
  rules.table_open = () => '<section class="scroll" tabindex="0" aria-label="table"><table>\n'
  rules.table_close = () => '</table></section>\n'
  return renderer
}

/** Takes what the parser's own rule would make a table of, where too few cells are left for it. */
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
