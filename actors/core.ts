/** What every part of the state may look at: the board, and the order of what happened. */
import type { Board } from './board.ts'
import type { Changes } from './changes.ts'

export type Core = { readonly board: Board; readonly changes: Changes }
