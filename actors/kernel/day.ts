/** UTC days, by which allowances, quotas and rounds count. */
export const daySeconds = 86_400

/** A stamp so far ahead of the clock was made by a clock that was wrong. */
export const absurdSeconds = 30 * daySeconds

const unitSeconds = { hours: 3_600, days: daySeconds } as const

/** `96 hours`, or in seconds what an operator has set to no whole number of them. */
export function spanText(seconds: number, unit: keyof typeof unitSeconds): string {
  const count = seconds / unitSeconds[unit]
  return Number.isInteger(count) ? `${count} ${unit}` : `${seconds} seconds`
}

export function dayOf(at: number): number {
  return Math.floor(at / daySeconds)
}

/** Unix seconds at which the day of this moment ends. */
export function dayEnd(at: number): number {
  return (dayOf(at) + 1) * daySeconds
}
