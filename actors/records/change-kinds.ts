/** Names of work states and of change kinds, in a file of their own so that declarations can use them without loading any state. */

/** The states of a work. Changes are named after them, and their numbers are stored in snapshots. */
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

/** Kinds of changes; their numbers are stored in snapshots. */
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
