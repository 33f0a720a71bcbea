/** What every part of the state may look at: the board, and the order of what happened. */
import type { Board } from './board.ts'
import type { Changes } from './changes.ts'

export type Core = { readonly board: Board; readonly changes: Changes }

/** The whole state, as deciders look at it: every part by its name. Filled by actors/state.ts, which stands above the parts. */
export interface Parts extends Core {}
