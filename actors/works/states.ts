/** The states of a work, as records, updates and notices name them. */
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
