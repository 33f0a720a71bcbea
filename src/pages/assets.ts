/**
 * Files that pages load, and the style and script inside every page: read once, named by hash, immutable.
 *
 * The style is inlined in the page and allowed by its hash: the first page is painted one round trip earlier than with a linked sheet, and
 * each further page costs 3.9 KB more of gzip (measurements: bench/pages.bench.ts). Scripts load after the paint, from
 * /assets/NAME.HASH.js. The build leaves out their comments and spaces (src/build.ts).
 */

import { hash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { fileOfProgram } from '../program.ts'

function read(name: string): string {
  return readFileSync(fileOfProgram(`pages/assets/${name}`), 'utf8')
}

/** The style sheet without comments and unnecessary whitespace. */
function smallStyle(css: string): string {
  return css
    .replace(/\/\*[\s\S]*?\*\//g, '')
    .replace(/\s+/g, ' ')
    .replace(/ ?([{};,]) ?/g, '$1')
    .replace(/([a-z-]): /g, '$1:')
    .replaceAll(';}', '}')
    .trim()
}

/** Sets the reader's chosen theme before anything is painted. */
const themeScript = `try{const t=localStorage.getItem("theme");if(t)document.documentElement.dataset.theme=t}catch{}`

function source(text: string): string {
  return `'sha256-${hash('sha256', text, 'base64')}'`
}

export const style = smallStyle(read('style.css'))
export const theme = themeScript
export const styleSource = source(style)
export const themeSource = source(themeScript)

type Asset = { readonly path: string; readonly type: string; readonly body: Buffer }

/** Each script comes after those it imports. */
const names = [
  'board.js',
  'composer.js',
  'me.js',
  'standing.js',
  'page.js',
  'posts.js',
  'live.js',
  'thread.js',
  'proof.js',
  'policy.js',
  'account.js',
  'rooms.js',
  'hooks.js',
  'inbox.js',
  'moderate.js',
  'work.js',
  'tool.js',
  'document.js',
  'write.js',
] as const

const made = new Map<string, Asset>()
for (const name of names) {
  const body = Buffer.from(withImports(read(name)))
  const short = hash('sha256', body, 'base64url').slice(0, 12)
  const path = `/assets/${name.replace('.js', '')}.${short}.js`
  made.set(name, { path, type: 'text/javascript; charset=utf-8', body })
}

export const assets: readonly Asset[] = [...made.values()]

/** Imports are named by their hash too, so that the hash of a script covers everything that runs. */
export function withImports(script: string): string {
  return script.replace(
    /(\bfrom ?|\bimport ?|\bimport\()(['"`])\.\/([a-z]+\.js)\2/g,
    (_, before: string, quote: string, other: string) => `${before}${quote}${assetPath(other)}${quote}`,
  )
}

export function assetPath(name: string): string {
  const asset = made.get(name)
  if (asset === undefined) throw new Error(`there is no asset ${name}`)
  return asset.path
}

const embedScript = Buffer.from(read('embed-v1.js'))

/** The script for other sites. It has one permanent address, so `integrity` gives the hash of its current bytes (W3C SRI). */
export const embed = {
  path: '/embed/v1.js',
  type: 'text/javascript; charset=utf-8',
  body: embedScript,
  integrity: `sha384-${hash('sha384', embedScript, 'base64')}`,
} as const

/** The board's mark: a sheet with a red initial rule, legible at 16 pixels on light and dark. */
export const iconSvg =
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><rect x="1.5" y="1" width="13" height="14" rx="1.5" fill="#fbf9f4" stroke="#a82c14"/><path d="M4 4h3v4H4z" fill="#a82c14"/><path d="M8.5 4.5h4M8.5 7.5h4M4 10.5h8.5M4 12.5h6" stroke="#1d1b18" stroke-width="1.1"/></svg>'
