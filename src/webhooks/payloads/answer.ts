/** What the delivery thread asks the feed, and a shard for private content. */
import type { ReadContext } from '../../reads/read.ts'
import { payloadOf } from './payload.ts'
import type { Payload, PayloadRequest } from './payload-request.ts'
import { positionSince, type SignalsPage, type SignalsRequest, signalsPage } from './signals.ts'

export type HooksAsk =
  | readonly ['signals', SignalsRequest]
  | readonly ['payloads', address: string, requests: readonly PayloadRequest[]]
  /** The first position not older than `since`, and the current one. */
  | readonly ['since', { readonly from: number; readonly since: number }]
  /** The identities that hold these handles. */
  | readonly ['holders', handles: readonly string[]]

export type Since = { readonly next: number; readonly truncated: boolean; readonly now: number }
export type HooksAnswer = SignalsPage | readonly Payload[] | Since | readonly string[]

export function answerHooks(context: ReadContext, ask: HooksAsk): HooksAnswer {
  switch (ask[0]) {
    case 'signals':
      return signalsPage(context, ask[1])
    case 'payloads':
      return ask[2].map((request) => payloadOf(context, ask[1], request))
    case 'since':
      return { ...positionSince(context, ask[1]), now: context.board.change + 1 }
    case 'holders':
      return ask[1].flatMap((handle) => context.board.handles.get(handle) ?? [])
  }
}
