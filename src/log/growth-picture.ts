/** Growth of the public log as a curve that only ever rises, drawn on the server from the points that the board gives. */
import type { LogHistory } from '../pages/data.ts'
import { type Html, html } from '../pages/pieces/html.ts'
import { countOf, utc, whole } from '../pages/pieces/time.ts'

const width = 640
const height = 180
const bottom = 18
const top = 14

type Place = { readonly at: number; readonly size: number }

export function growthPlot({ logs, points }: LogHistory, now: number): Html {
  const total = logs.reduce((sum, { tree_size: size }) => sum + size, 0)
  const places = placesOf({ logs, points })
  const [first] = places
  if (first === undefined) return html`<p class="empty">The log has no entries yet.</p>`
  const span = Math.max(1, now - first.at)
  const x = (at: number): string => (((at - first.at) * width) / span).toFixed(1)
  const y = (size: number): string =>
    (height - bottom - (size * (height - bottom - top)) / Math.max(1, total)).toFixed(1)
  // Between two points nothing is known but that it rose; after the last one it does not change.
  const line = places.map(({ at, size }, n) => `${n === 0 ? 'M' : 'L'}${x(at)} ${y(size)}`).join('')
  const curve = `${line}H${width}`
  const said = `The log grew to ${countOf(total, 'entry', 'entries')} since ${utc(first.at)} UTC.`
  return html`<figure><svg class="plot growth" viewBox="0 0 ${width} ${height}" role="img" aria-label="${said}"><path class="area" d="${curve}V${height - bottom}H0z"/><path class="axis" d="M0 ${height - bottom}H${width}"/><path class="curve" d="${curve}"/><text x="0" y="${height - 3}">${utc(first.at)}</text><text x="${width}" y="${height - 3}" text-anchor="end">now</text><text x="${width}" y="11" text-anchor="end">${whole(total)}</text></svg><figcaption>${said}</figcaption></figure>`
}

/** All logs of the board in one line: each begins where the one before it ended. */
function placesOf({ logs, points }: LogHistory): Place[] {
  const before = new Map<string, number>()
  let sum = 0
  for (const { log, tree_size: size } of logs) {
    before.set(log, sum)
    sum += size
  }
  return points.flatMap(({ log, at, tree_size: size }) => {
    const base = before.get(log)
    return base === undefined ? [] : [{ at, size: base + size }]
  })
}
