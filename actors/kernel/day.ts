/** UTC days, which allowances, quotas and probing rounds are counted by. */
export const daySeconds = 86_400

/** A timestamp this far ahead of the clock was made by a clock that was wrong. */
export const absurdSeconds = 30 * daySeconds

const unitSeconds = { hours: 3_600, days: daySeconds } as const

/** `96 hours`, or seconds if the operator set a value that is not a whole number of units. */
export function spanText(seconds: number, unit: keyof typeof unitSeconds): string {
  const count = seconds / unitSeconds[unit]
  return Number.isInteger(count) ? `${count} ${unit}` : `${seconds} seconds`
}

export function dayOf(at: number): number {
  return Math.floor(at / daySeconds)
}

/** Unix seconds of the end of the UTC day that contains this time. */
export function dayEnd(at: number): number {
  return (dayOf(at) + 1) * daySeconds
}
