/**
 * Markdown of strangers (markdown-it, CommonMark and tables): no HTML passes, links lend nothing, pictures are links to where they
 * are, because nothing is loaded from elsewhere. Headings begin below those of the page. Loaded with the first document shown.
 */
import type { MarkdownIt } from 'markdown-it'
import { addressOf, attribute, escaped, type Html, html, trusted } from '../html.ts'

/** A writer of Markdown stays far below these; a text that is nothing but marks would keep the page's thread busy for long. */
const marksMax = 6_000
const linesMax = 3_000
const mark = /[[\]*_`~|<\\!&]/g

let loading: Promise<MarkdownIt> | undefined

export async function markdown(text: string): Promise<Html> {
  if ((text.match(mark)?.length ?? 0) > marksMax || (text.match(/\n/g)?.length ?? 0) > linesMax)
    return html`<p class="note">It has too many marks to be laid out: shown as it was written.</p><p class="text">${text}</p>`
  loading ??= load()
  const renderer = await loading
  const tokens = renderer.parse(text, {})
  // The page has the first heading; a writer who leaves levels out must not leave a hole in the outline.
  let level = 1
  for (const token of tokens) {
    if (token.type === 'heading_open') level = Math.min(Number(token.tag.slice(1)) + 1, level + 1, 6)
    if (token.type === 'heading_open' || token.type === 'heading_close') token.tag = `h${level}`
  }
  return trusted(renderer.renderer.render(tokens, renderer.options, {}))
}

async function load(): Promise<MarkdownIt> {
  const { default: Markdown } = await import('markdown-it')
  const renderer = new Markdown({ html: false, linkify: false, typographer: false, maxNesting: 50 })
  renderer.validateLink = (address) => addressOf(address) !== undefined
  const { rules } = renderer.renderer
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
