/** Plots as self-contained SVG files: groups of bars, one bar for each series. */
const colors = ['#0b57a4', '#d95f02', '#7b8794', '#7a4fa3', '#2e8540', '#b3261e']
const size = { width: 760, height: 380, left: 76, right: 16, top: 44, bottom: 76 }

export type Plot = {
  readonly title: string
  /** What the bars count, with the unit. */
  readonly unit: string
  readonly groups: readonly string[]
  /** A value for each group; undefined if it was not measured. */
  readonly series: readonly { readonly name: string; readonly values: readonly (number | undefined)[] }[]
  /** A logarithmic axis, for bars that differ widely. */
  readonly isLogarithmic?: boolean
}

export function plotSvg({ title, unit, groups, series, isLogarithmic = false }: Plot): string {
  const values = series.flatMap((each) => each.values.filter((value) => value !== undefined && value > 0)) as number[]
  const most = Math.max(...values)
  const ticks = isLogarithmic ? tenfold(Math.min(...values), most) : evenly(most)
  const [first = 0, last = 1] = [isLogarithmic ? ticks[0]! : 0, ticks.at(-1)!]
  const inner = { width: size.width - size.left - size.right, height: size.height - size.top - size.bottom }
  const scale = (value: number) => (isLogarithmic ? Math.log(value / first) / Math.log(last / first) : value / last)
  const y = (value: number) => size.top + inner.height * (1 - Math.max(0, scale(value)))
  const group = inner.width / groups.length
  const bar = (group * 0.8) / series.length
  const lines = ticks.map(
    (tick) =>
      `<line x1="${size.left}" x2="${size.width - size.right}" y1="${y(tick)}" y2="${y(tick)}" stroke="#ddd"/>` +
      `<text x="${size.left - 6}" y="${y(tick) + 4}" text-anchor="end">${tick.toLocaleString('en')}</text>`,
  )
  const bars = series.flatMap(({ name, values: of }, n) =>
    of.map((value, at) => {
      if (value === undefined) return ''
      const x = size.left + group * (at + 0.1) + bar * n
      const label = `<title>${escaped(name)}, ${escaped(groups[at]!)}: ${value.toLocaleString('en')}</title>`
      const shape = `width="${bar * 0.92}" height="${size.top + inner.height - y(value)}" fill="${colors[n % colors.length]}"`
      return `<rect x="${x}" y="${y(value)}" ${shape}>${label}</rect>`
    }),
  )
  const names = groups.map(
    (name, at) =>
      `<text x="${size.left + group * (at + 0.5)}" y="${size.height - size.bottom + 18}" text-anchor="middle">${escaped(name)}</text>`,
  )
  const perLine = 3
  const legend = series.map(({ name }, n) => {
    const x = 12 + (n % perLine) * 250
    const row = size.height - 34 + Math.floor(n / perLine) * 18
    return `<rect x="${x}" y="${row - 10}" width="11" height="11" fill="${colors[n % colors.length]}"/><text x="${x + 16}" y="${row}">${escaped(name)}</text>`
  })
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${size.width} ${size.height}" font-family="sans-serif" font-size="12" fill="#222">
<rect width="100%" height="100%" fill="#fff"/>
<text x="${size.left}" y="20" font-size="15" font-weight="bold">${escaped(title)}</text>
<text x="${size.left}" y="36" fill="#555">${escaped(unit)}</text>
${[...lines, ...bars, ...names, ...legend].join('\n')}
</svg>
`
}

/** Four or five round steps from zero to above the largest value. */
function evenly(most: number): number[] {
  const rough = most / 4
  const power = 10 ** Math.floor(Math.log10(rough))
  const step = [1, 2, 2.5, 5, 10].map((by) => by * power).find((each) => each >= rough)!
  return Array.from({ length: Math.ceil(most / step) + 1 }, (_, n) => n * step)
}

function tenfold(least: number, most: number): number[] {
  const from = Math.floor(Math.log10(least))
  const to = Math.max(from + 1, Math.ceil(Math.log10(most)))
  return Array.from({ length: to - from + 1 }, (_, n) => 10 ** (from + n))
}

export function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')
}
