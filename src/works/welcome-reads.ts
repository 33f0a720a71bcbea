/** Asked by the board at its start: who has just posted in public for the first time and has no welcome grant. */
import { type KnownAnswer, known, type ReadContext, type ReadRequest, type Reads } from '../reads/read.ts'

export const welcomeReads = { 'credit.unwelcomed': unwelcomed } satisfies Reads

/** First posts of the last `seconds` before the newest one: older ones are not looked for. */
function unwelcomed(
  { state, board }: ReadContext,
  { args }: ReadRequest,
): KnownAnswer<{ identities: readonly string[] }> {
  const { events, authorList } = board
  const since = (events.at[events.count - 1] ?? 0) - Number(args.seconds)
  const identities = new Set<string>()
  for (let slot = events.count - 1; slot >= 0 && events.at[slot]! >= since; slot--) {
    const author = authorList[events.author[slot]!]!
    const isFirst = events.at[author.events.at(0)]! >= since
    if (isFirst && !state.market.given.welcomed.has(author.id)) identities.add(author.id)
  }
  return known({ identities: [...identities] })
}
