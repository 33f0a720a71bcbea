/** The states that a work goes through: changes are called by them, and their numbers are in snapshots. */
export const workStates = [
  'open',
  'claimed',
  'submitted',
  'revision',
  'rejected',
  'disputed',
  'accepted',
  'refunded',
  'split',
  'cancelled',
  'expired',
  'recovery_required',
] as const
export type WorkState = (typeof workStates)[number]
