/** Reads on the tools directory that the feed answers: a listing as it was said, and the reviews of a subject. */
import { fromFrame } from '../../../actors/record.ts'
import { type Listing, listingIn } from '../../../actors/tools/listing.ts'
import { refusal } from '../../refusals.ts'
import { ok, type ReadAnswer, type ReadContext, type ReadRequest, type Reads } from './read.ts'

export const toolsReads: Reads = {
  'tools.listing': listing,
}

/** What the house asks itself of a tool that is in the directory. Tools of the board itself are not in it. */
export type FoundListing = {
  readonly listing: Listing
  readonly subject: string
  readonly host: string
  /** Identity id, or '' where it was imported and nobody has taken it over. */
  readonly owner: string
  readonly verified: boolean
  /** It stands in the directory. */
  readonly listed: boolean
}

function listing({ state, frame }: ReadContext, { args }: ReadRequest): ReadAnswer {
  const entry = state.tools.find(String(args.target))
  if (entry === undefined)
    return { ok: false, absent: refusal('not_found', `there is no listing ${args.target}`, 'target') }
  const { id, subject, host, owner, shard, seq, row } = entry
  const found: FoundListing = {
    listing: listingIn(fromFrame(frame(shard, seq)), id, row),
    subject,
    host,
    owner,
    verified: owner !== '' && state.tools.isOwnerOf(host, owner),
    listed: state.tools.isListed(entry),
  }
  return ok(found)
}
