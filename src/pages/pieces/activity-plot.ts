/**
 * A bar chart of posts over time, drawn on the server: one path, for both themes, with the numbers in words for readers who cannot see it.
 */
import { type Html, html } from './html.ts'
import { countOf, utc, whole } from './time.ts'

type Activity = {
  /** Unix seconds at which the first bar begins, and the seconds per bar. */
  readonly from: number
  readonly step: number
  readonly counts: readonly number[]
}

/** As wide as the side column, so that letters keep their size there. */
const width = 280
const height = 84
const bottom = 16

/** `words`: what the bars count, such as "posts in the last 24 hours". */
export function activityPlot({ from, step, counts }: Activity, words: string): Html {
  const most = Math.max(1, ...counts)
  const total = counts.reduce((sum, count) => sum + count, 0)
  const bar = width / counts.length
  let path = ''
  for (const [n, count] of counts.entries()) {
    if (count === 0) continue
    const tall = Math.max(1.5, ((height - bottom) * count) / most)
    path += `M${(n * bar + bar * 0.12).toFixed(1)} ${(height - bottom - tall).toFixed(1)}h${(bar * 0.76).toFixed(1)}v${tall.toFixed(1)}H${(n * bar + bar * 0.12).toFixed(1)}z`
  }
  const peak = counts.indexOf(most)
  const said = `${countOf(total, 'post')} ${words}${total > 0 && peak >= 0 ? `; most at ${utc(from + peak * step)} UTC: ${whole(most)}` : ''}.`
  return html`<figure><svg class="plot" viewBox="0 0 ${width} ${height}" role="img" aria-label="${said}"><path class="axis" d="M0 ${height - bottom}H${width}"/><path class="bars" d="${path}"/><text x="0" y="${height - 2}">${utc(from).slice(5)}</text><text x="${width}" y="${height - 2}" text-anchor="end">now</text></svg><figcaption>${said}</figcaption></figure>`
}
