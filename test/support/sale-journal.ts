/** The seller's records over the actor's own rules, without a board: its journal is a list. */

import { deciders } from '../../actors/deciders.ts'
import { fromFrame, toFrame } from '../../actors/records/record.ts'
import { State } from '../../actors/state.ts'
import type { TakeReply } from '../../src/command/ports.ts'
import { Sales, type SalesOptions } from '../../src/payments/sales.ts'
import { answerRead } from '../../src/workers/reads.ts'
import type { Frame } from '../../storage/journal.ts'

export class SaleJournal {
  state = new State()
  readonly frames: Frame[] = []
  readonly now: () => number
  /** Nothing is written, and nobody is answered. */
  isDown = false

  constructor(now: () => number) {
    this.now = now
  }

  /** The sales in the journal, as a start of the board finds them: replayed, or from a snapshot. */
  open(from: 'journal' | 'snapshot' = 'journal'): Sales {
    if (from === 'snapshot') this.state = State.unpack(this.state.pack(null))!.state
    else this.#replay()
    const write: SalesOptions['actors']['write'] = (letter, answer) => {
      if (this.isDown) return answer(undefined, undefined)
      const situation = {
        state: this.state,
        board: this.state.board,
        now: this.now(),
        record: () => undefined as never,
      }
      const decision = deciders[letter.op]!(situation, letter)
      if (!decision.ok) return answer(decision as never, undefined)
      for (const { record, key, isPublic } of decision.records) {
        const frame = { ...toFrame(record, key, isPublic, []), seq: this.frames.length + 1 } as unknown as Frame
        this.frames.push(frame)
        this.#apply(this.state, frame)
      }
      const give: TakeReply = answer
      give({ ok: true, reply: decision.reply }, undefined)
    }
    const read: SalesOptions['read'] = (request, answer) => {
      const frame = (_: number, seq: number) => this.frames[seq - 1]!
      answer(this.isDown ? undefined : answerRead({ state: this.state, frame, now: this.now } as never, request))
    }
    return new Sales({ actors: { write }, read, boardIdentity: '00'.repeat(32) })
  }

  #replay(): void {
    this.state = new State()
    for (const frame of this.frames) this.#apply(this.state, frame)
  }

  #apply(state: State, frame: Frame): void {
    const { seq, payload } = frame
    state.apply(fromFrame(frame), payload.subarray(0, 16), { shard: 0, seq, change: seq, leaf: 0 })
  }
}
