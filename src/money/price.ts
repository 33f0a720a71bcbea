/** Prices: decimal dollars as people and listings write them, and millionths of a dollar for arithmetic. */

const priceText = /^(0|[1-9][0-9]{0,5})(?:\.([0-9]{1,9}))?$/

/** A decimal price in millionths of a dollar, rounded up; undefined if it cannot be parsed. */
export function microsOf(price: string): number | undefined {
  const [, whole, part = ''] = priceText.exec(price) ?? []
  if (whole === undefined) return undefined
  const micros = Number(whole) * 1_000_000 + Number(part.slice(0, 6).padEnd(6, '0'))
  return /[1-9]/.test(part.slice(6)) ? micros + 1 : micros
}

/** The decimal price for this many millionths of a dollar. */
export function priceOf(micros: number): string {
  const whole = Math.floor(micros / 1_000_000)
  const part = String(micros % 1_000_000)
    .padStart(6, '0')
    .replace(/0+$/, '')
  return part === '' ? String(whole) : `${whole}.${part}`
}
