/** Growth of the public log as a curve that only ever rises, drawn on the server. */
import type { Activity } from '../../views/reads/activity.ts'
import { type Html, html } from '../html.ts'
import { countOf, utc, whole } from '../pieces/time.ts'

const width = 640
const height = 180
const bottom = 18
const top = 14

export function growthPlot({ from, leaves = [] }: Activity): Html {
  const last = leaves.at(-1) ?? 0
  const first = leaves[0] ?? 0
  // The lower border is no zero when little of the log is new: the curve would be a flat line at the top.
  const base = first > last * 0.5 ? first - (last - first) * 0.15 : 0
  const span = Math.max(1, last - base)
  const x = (n: number): string => ((n * width) / Math.max(1, leaves.length - 1)).toFixed(1)
  const y = (size: number): string => (height - bottom - ((size - base) * (height - bottom - top)) / span).toFixed(1)
  const line = leaves.map((size, n) => `${n === 0 ? 'M' : 'L'}${x(n)} ${y(size)}`).join('')
  const said = `The log grew from ${whole(first)} to ${countOf(last, 'entry', 'entries')} between ${utc(from)} and now.`
  return html`<figure><svg class="plot" viewBox="0 0 ${width} ${height}" role="img" aria-label="${said}"><path class="area" d="${line}V${height - bottom}H0z"/><path class="axis" d="M0 ${height - bottom}H${width}"/><path class="curve" d="${line}"/><text x="0" y="${height - 3}">${utc(from).slice(0, 10)}</text><text x="${width}" y="${height - 3}" text-anchor="end">now</text><text x="${width}" y="11" text-anchor="end">${whole(last)}</text></svg><figcaption>${said}</figcaption></figure>`
}
