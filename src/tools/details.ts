/** Details of one tool: the whole listing, whether the index has it and why, and the result of the last probe. */
import type { Listing } from '../../actors/tools/listing.ts'
import type { Entry, ProbedFacts } from '../../actors/tools/tools.ts'
import type { Directory } from './directory.ts'
import { type Agent, agentId, type Doc, type OwnTool, ofAgent, ofListing, oneLine } from './doc.ts'
import { type Quality, qualityIn } from './quality.ts'
import { floodMax } from './rank.ts'
import { docJson, type Showing } from './show.ts'

type Details = Readonly<Record<string, unknown>>

/** What the details need besides the directory. */
type DetailsContext = {
  readonly directory: Directory
  readonly showing: Showing
  /** Facts of a recorded probe. */
  readonly probe: (shard: number, seq: number) => ProbedFacts
  /** Unix seconds. */
  readonly now: number
}

/** `data` of tools.get, or undefined. */
export function toolDetails(context: DetailsContext, asked: string): Details | undefined {
  const { directory } = context
  const id = directory.idOf(asked)
  const own = directory.own(id)
  if (own !== undefined) return ofOwn(context, own)
  const entry = directory.tools.find(id)
  if (entry !== undefined) return ofEntry(context, entry)
  const agent = directory.agent(id)
  return agent === undefined ? undefined : ofSomebody(context, agent)
}

function ofOwn(context: DetailsContext, { id, description, input, output }: OwnTool): Details {
  const { directory, showing, now } = context
  const doc = showing.index.find(id)!
  const more = { description, doors: doc.doors, verified: true, input_schema: input, output_schema: output }
  const made = { created_at: doc.doors[0]!.checked_at, updated_at: doc.doors[0]!.checked_at }
  return {
    tool: { ...shown(context, doc, qualityIn(directory.sources, doc, now)), ...more, ...made },
    index: indexState(context, doc, ''),
  }
}

function ofSomebody(context: DetailsContext, agent: Agent): Details {
  const { directory, showing, now } = context
  const { identity, description, at } = agent
  const isListed = showing.index.find(agentId(identity)) !== undefined
  const { doc } = ofAgent(0, agent)
  const more = { description: oneLine(description), doors: [], owner: identity, verified: true }
  return {
    tool: {
      ...shown(context, doc, qualityIn(directory.sources, doc, now)),
      ...more,
      link: `/i/${identity}`,
      created_at: at,
      updated_at: at,
    },
    index: indexState(context, isListed ? showing.index.find(doc.id) : undefined, 'this identity is suspended'),
  }
}

function ofEntry(context: DetailsContext, entry: Entry): Details {
  const { directory, showing, now } = context
  const { id, owner, host, createdAt, updatedAt } = entry
  const listing = directory.listing(entry)
  const listed = showing.index.find(id)
  const doc = listed ?? ofListing(0, listing, owner).doc
  const tool = {
    ...shown(context, doc, qualityIn(directory.sources, doc, now)),
    ...texts(listing),
    doors: doc.doors,
    ...(owner === '' ? {} : { owner }),
    verified: owner !== '' && directory.tools.isOwnerOf(host, owner),
    created_at: createdAt,
    updated_at: updatedAt,
  }
  const index = indexState(context, listed, directory.absence(entry))
  return { tool, index, ...(entry.lastProbe === undefined ? {} : { probe: probeOf(context, entry) }) }
}

/** The fields that only the whole listing has. Texts are reduced to one line, because they are shown where a line is expected. */
function texts(listing: Listing): Details {
  const { description, url, method, service, openapi_url, mcp_url, input_schema, source } = listing
  const said = { link: url, method, service, openapi_url, mcp_url, source }
  return {
    description: oneLine(description),
    ...Object.fromEntries(Object.entries(said).filter(([, value]) => value !== '')),
    ...(input_schema === undefined ? {} : { input_schema }),
  }
}

function shown({ showing }: DetailsContext, doc: Doc, quality: Quality): Details {
  const count = (kind: string) => quality.reviews.filter((each) => each.kind === kind).length
  const reviews = { works: count('works'), mixed: count('mixed'), down: count('down'), avoid: count('avoid') }
  return {
    ...docJson(showing, doc, quality),
    tags: doc.tags,
    callable: showing.callable(doc),
    reviews: { ...reviews, verdict: quality.verdict },
  }
}

function indexState({ directory, showing: { index } }: DetailsContext, doc: Doc | undefined, absence: string): Details {
  const spam = doc !== undefined && index.isFlood(doc)
  const duplicates = doc === undefined ? 0 : index.twinsOf(doc)
  const built_at = directory.builtAt
  if (doc === undefined) return { listed: false, why: absence, spam, duplicates, built_at }
  const flood = `it is found, but ranked lower: more than ${floodMax} listings of its host have the same description. Describe what this one does with tools.update`
  const twins = `it is found; ${duplicates} other ${duplicates === 1 ? 'listing has' : 'listings have'} the same address`
  const why = spam ? flood : duplicates > 0 ? twins : 'it is found'
  return { listed: true, why, spam, duplicates, built_at }
}

function probeOf({ directory, probe }: DetailsContext, { id, host, owner, lastProbe }: Entry): Details {
  const { shard, seq, at } = lastProbe!
  const { probe: command, verdict, mismatch, saw } = probe(shard, seq)
  return {
    id: command,
    tool: id,
    host,
    at,
    verdict,
    mismatch,
    verified: owner !== '' && directory.tools.isOwnerOf(host, owner),
    opt_out: directory.tools.hasOptedOut(host),
    saw,
  }
}
