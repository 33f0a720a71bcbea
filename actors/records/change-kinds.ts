/** Names of states and of changes: alone, for declarations, which load no state. */

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

/** Kinds of changes; their numbers are in snapshots. */
export const changeKinds = [
  'event.posted',
  'event.superseded',
  'event.hidden',
  'event.restored',
  'event.redacted',
  'room.created',
  'document.written',
  'receiver.item',
  ...workStates.map((state) => `work.${state}` as const),
] as const
export type ChangeKind = (typeof changeKinds)[number]
