/** UTC days, by which allowances, quotas and rounds count. */
export const daySeconds = 86_400

export function dayOf(at: number): number {
  return Math.floor(at / daySeconds)
}

/** Unix seconds at which the day of this moment ends. */
export function dayEnd(at: number): number {
  return (dayOf(at) + 1) * daySeconds
}
