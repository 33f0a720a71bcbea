/**
 * CPU profiles of several threads as one picture: a flame graph, threads side by side, callers above callees. The SVG is self-contained: a
 * click zooms into a frame, the search field marks frames by name.
 */
import { escaped } from './plot.ts'

type ProfileNode = {
  readonly id: number
  readonly callFrame: { readonly functionName: string; readonly url: string; readonly lineNumber: number }
  readonly children?: readonly number[]
}

/** What V8's profiler writes: the node that was on top at each sample, and microseconds between samples. */
export type CpuProfile = {
  readonly nodes: readonly ProfileNode[]
  readonly samples?: readonly number[]
  readonly timeDeltas?: readonly number[]
}

/** A function below its callers. `us` includes its callees. */
export type Frame = { readonly name: string; readonly file: string; us: number; readonly children: Map<string, Frame> }

export function frameOf(name: string, file = ''): Frame {
  return { name, file, us: 0, children: new Map() }
}

/** Paths without `directory`, which ends in a slash, or any other directory of this machine: a profile is meant to be shared. */
export function withoutDirectory(profile: CpuProfile, directory: string): CpuProfile {
  const nodes = profile.nodes.map((node) => {
    const { url } = node.callFrame
    const local = url.replace(/^file:\/\//, '').replace(directory, '')
    const short = local.startsWith('/') ? local.slice(local.lastIndexOf('/') + 1) : local
    return { ...node, callFrame: { ...node.callFrame, url: short } }
  })
  return { ...profile, nodes }
}

/** The calls of one thread under a root with its name; time in which it waited for events is left out. */
export function framesOf(thread: string, profile: CpuProfile): Frame {
  const root = frameOf(thread)
  const byId = new Map(profile.nodes.map((node) => [node.id, node]))
  const parents = new Map(
    profile.nodes.flatMap(({ id, children = [] }) => children.map((child) => [child, id] as const)),
  )
  const ownUs = new Map<number, number>()
  for (const [n, id] of (profile.samples ?? []).entries())
    ownUs.set(id, (ownUs.get(id) ?? 0) + Math.max(0, profile.timeDeltas?.[n] ?? 0))
  for (const [id, us] of ownUs) {
    const path: ProfileNode[] = []
    for (let at: number | undefined = id; at !== undefined; at = parents.get(at)) path.unshift(byId.get(at)!)
    const names = path.map(({ callFrame }) => callFrame.functionName)
    if (names.includes('(idle)')) continue
    root.us += us
    let frame = root
    for (const { callFrame } of path.slice(1)) {
      const name = callFrame.functionName === '' ? '(anonymous)' : callFrame.functionName
      const file = callFrame.url === '' ? '' : `${callFrame.url}:${callFrame.lineNumber + 1}`
      const key = `${name} ${file}`
      const child = frame.children.get(key) ?? frameOf(name, file)
      frame.children.set(key, child)
      child.us += us
      frame = child
    }
  }
  return root
}

const width = 1400
const rowHeight = 17
const top = 64
/** Narrower frames are left out: they are too small to read or click. */
const narrowest = 0.25

type Box = { readonly frame: Frame; readonly x: number; readonly width: number; readonly depth: number }

export type Flame = { readonly title: string; readonly note: string; readonly threads: readonly Frame[] }

export function flameSvg({ title, note, threads }: Flame): string {
  const all = frameOf('all threads')
  for (const thread of threads) {
    all.children.set(thread.name, thread)
    all.us += thread.us
  }
  const boxes: Box[] = []
  const place = (frame: Frame, x: number, depth: number): void => {
    const own = (frame.us / all.us) * width
    if (own < narrowest) return
    boxes.push({ frame, x, width: own, depth })
    let at = x
    for (const child of [...frame.children.values()].sort((a, b) => b.us - a.us)) {
      place(child, at, depth + 1)
      at += (child.us / all.us) * width
    }
  }
  place(all, 0, 0)
  const deepest = boxes.reduce((most, { depth }) => Math.max(most, depth), 0)
  const height = top + (deepest + 1) * rowHeight + 12
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" font-family="ui-monospace, Consolas, monospace" font-size="11">
<style>g { cursor: pointer } g:hover rect { stroke: #222 } .found rect { fill: #c2185b } .found text { fill: #fff } text { pointer-events: none }</style>
<rect width="100%" height="100%" fill="#fff"/>
<text x="8" y="22" font-size="16" font-family="sans-serif" font-weight="bold">${escaped(title)}</text>
<text x="8" y="40" font-size="12" font-family="sans-serif" fill="#444">${escaped(note)}</text>
<text id="shown" x="8" y="56" font-size="12" font-family="sans-serif" fill="#444">A click on a frame makes it as wide as the picture; a click on the top row goes back. Press / to mark frames by name.</text>
${boxes.map((box) => boxSvg(box, all.us)).join('\n')}
<script><![CDATA[${script}]]></script>
</svg>
`
}

function boxSvg({ frame, x, width: own, depth }: Box, allUs: number): string {
  const y = top + depth * rowHeight
  const share = `${((frame.us / allUs) * 100).toFixed(2)} %, ${(frame.us / 1000).toFixed(1)} ms`
  const place = frame.file === '' ? '' : ` ${frame.file}`
  const label = fitted(labelOf(frame), own)
  return (
    `<g data-x="${x.toFixed(3)}" data-w="${own.toFixed(3)}" data-n="${escaped(labelOf(frame))}"><title>${escaped(`${frame.name}${place}: ${share}`)}</title>` +
    `<rect x="${x.toFixed(2)}" y="${y}" width="${Math.max(0.2, own - 0.4).toFixed(2)}" height="${rowHeight - 1}" fill="${colorOf(frame, depth)}"/>` +
    `<text x="${(x + 3).toFixed(2)}" y="${y + 12}">${escaped(label)}</text></g>`
  )
}

/** The function and, if it is informative, its file without folders and line. */
function labelOf({ name, file }: Frame): string {
  const last = file.split('/').at(-1) ?? ''
  const short = name === '(anonymous)' ? last : last.replace(/:\d+$/, '')
  return short === '' ? name : `${name} ${short}`
}

const charWidth = 6.7

function fitted(label: string, own: number): string {
  const fit = Math.floor((own - 6) / charWidth)
  if (fit < 3) return ''
  return label.length <= fit ? label : `${label.slice(0, fit - 1)}…`
}

/** By the origin of the code, so that one sees whose time it is. */
function colorOf({ name, file }: Frame, depth: number): string {
  if (depth < 2) return '#d5dbe1'
  if (name.startsWith('(garbage')) return '#9ccc65'
  if (file === '') return '#e0e0e0'
  if (file.startsWith('node:')) return '#90caf9'
  if (file.includes('node_modules')) return '#ce93d8'
  if (file.startsWith('dist/')) return '#ffb74d'
  return '#fff59d'
}

/** Runs in the picture: zooms, and marks search results. */
const script = `
const groups = [...document.querySelectorAll('g')], full = ${width}
const show = (from, wide) => {
  for (const g of groups) {
    const x = (g.dataset.x - from) / wide * full, w = g.dataset.w / wide * full
    const left = Math.max(0, x), right = Math.min(full, x + w)
    g.style.display = right - left < 0.2 ? 'none' : ''
    const [, rect, text] = g.children
    rect.setAttribute('x', left); rect.setAttribute('width', Math.max(0.2, right - left - 0.4)); text.setAttribute('x', left + 3)
    const fit = Math.floor((right - left - 6) / ${charWidth}), n = g.dataset.n
    text.textContent = fit < 3 ? '' : n.length <= fit ? n : n.slice(0, fit - 1) + '…'
  }
}
for (const g of groups) g.addEventListener('click', () => show(+g.dataset.x, +g.dataset.w))
addEventListener('keydown', (event) => {
  if (event.key !== '/') return
  event.preventDefault()
  const word = prompt('Mark frames whose name contains:') ?? ''
  let sum = 0
  for (const g of groups) {
    const isFound = word !== '' && g.dataset.n.toLowerCase().includes(word.toLowerCase())
    g.classList.toggle('found', isFound)
    if (isFound) sum++
  }
  document.getElementById('shown').textContent = word === '' ? '' : sum + ' frames contain ' + word
})
`
