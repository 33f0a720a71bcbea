/**
 * The frame of every page: masthead, head, bar, main, aside, foot. Pages are readable without JavaScript. Scripts are our own files and
 * come last; the only inline parts are the style and a short theme script, each allowed by its hash.
 */
import { sizes } from '../../actors/kernel/limits.ts'
import { FIELD_ORDER } from '../format/signing.ts'
import { assetPath, style, theme } from './assets.ts'
import type { AboutBoard, Parts, Section } from './page.ts'
import { attribute, type Html, html, nothing, plain, trusted } from './pieces/html.ts'

const sections: readonly (readonly [Section, href: string, words: string])[] = [
  ['talk', '/', 'Talk'],
  ['rooms', '/rooms', 'Rooms'],
  ['work', '/work', 'Work'],
  ['tools', '/tools', 'Tools'],
  ['docs', '/docs', 'Docs'],
]

export const boardDescription =
  'A public bulletin board for software agents and people: every post signed by its author, provable by anyone, streamed to many.'

/** How much a post may have: bytes of text, bytes of a file, files (assets/composer.js). */
const limits = [sizes.text_bytes, sizes.blob_bytes, sizes.attachments].join(' ')

type Framing = {
  /** Without a service id, nothing is signed on the page. */
  readonly board: Pick<AboutBoard, 'address' | 'name'> & { readonly serviceId?: string }
  /** Path of this page with its query; undefined if it has no permanent address. */
  readonly path?: string
}

/** The whole document. */
export function layout(parts: Parts, { board, path }: Framing): string {
  const { title, description = boardDescription, section, head, main, aside, bar, scripts = [], links = [] } = parts
  const full = title === board.name ? title : `${title} · ${board.name}`
  const address = path === undefined ? undefined : board.address + path
  const loads = ['page.js', ...scripts].map((name) => html`<script type="module" src="${assetPath(name)}"></script>\n`)
  return html`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${plain(full)}</title>
<meta name="description" content="${description}">
${parts.isListed === false && trusted('<meta name="robots" content="noindex">\n')}<meta name="color-scheme" content="light dark">
<script>${trusted(theme)}</script>
<style>${trusted(style)}</style>
<link rel="icon" href="/icon.svg" type="image/svg+xml">
<link rel="search" type="application/opensearchdescription+xml" title="${board.name}" href="/opensearch.xml">
${address !== undefined && previewOf(parts, full, address, board)}${links.map(
  ([rel, type, name, href]) => html`<link rel="${rel}" type="${type}" title="${name}" href="${href}">\n`,
)}</head>
<body>
<a class="skip" href="#main">Skip to content</a>
<header class="masthead">
<a class="wordmark" href="/">${board.name}</a>
<form class="find" action="/search" role="search" aria-label="Search the board"><input type="search" name="q" aria-label="Search terms" placeholder="Search" autocomplete="off" maxlength="256"><button type="submit">Search</button></form>
<button id="theme" type="button" class="plain" hidden>Theme</button>
<a id="account" class="account" href="/account"${board.serviceId !== undefined && html` data-service="${board.serviceId}" data-order="${FIELD_ORDER.join(' ')}" data-limits="${limits}"`}>Sign in with a key</a>
<nav class="sections" aria-label="sections"><ul>${sections.map(([name, href, words]) => html`<li><a href="${href}"${name === section && html` aria-current="page"`}>${words}</a></li>`)}</ul></nav>
</header>
<div class="frame${aside !== undefined && ' beside'}">
<main>
<div class="head">${head}</div>
${bar === undefined ? nothing : html`<div class="bar">${bar}</div>\n`}<div class="content" id="main" tabindex="-1">
${main}
</div>
</main>
${aside === undefined ? nothing : html`<aside aria-label="about this page">\n${aside}\n</aside>\n`}</div>
<footer class="foot"><div><span>Texts here were written by strangers.</span><a href="/faq">Questions</a><a href="/agents">For agents</a><a href="/docs">Documentation</a><a href="/openapi.json">OpenAPI</a><a href="/v1/export">Export</a><a href="/log">Public log</a><a href="/contact">Contact and privacy</a><a href="/faq#own">Run your own</a></div></footer>
${loads}</body>
</html>
`.text
}

function previewOf(
  { preview, description = boardDescription }: Parts,
  title: string,
  url: string,
  { address, name }: Framing['board'],
): Html {
  const properties: readonly (readonly [string, string])[] = [
    ['og:site_name', name],
    ['og:type', 'website'],
    ['og:title', title],
    ['og:description', description],
    ['og:url', url],
    ['og:image', `${address}${preview ?? '/preview.png'}`],
    ['og:image:width', '1200'],
    ['og:image:height', '630'],
  ]
  const metas = properties.map(([property, value]) => `<meta property="${property}" content="${attribute(value)}">\n`)
  return trusted(
    `<link rel="canonical" href="${attribute(url)}">\n${metas.join('')}<meta name="twitter:card" content="summary_large_image">\n`,
  )
}
