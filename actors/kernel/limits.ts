/**
 * Limits: every number that bounds what a caller may send or keep open, with its unit and its reason. All are shown at
 * /capabilities, and the operator can set them (limits-given.ts). Sizes always hold; BROADSIDE_LIMITS=off lifts rates
 * and quotas.
 */

import { settledFactors, settledRates, settledSizes } from './limits-given.ts'
import { canonicalNetwork } from './networks.ts'

export type Rates = typeof rates

/** Bytes and counts of one request. */
const sizeDefaults = {
  /** A command with a 1 MiB attachment in base64url fits. */
  body_bytes: 2 * 1024 * 1024,
  /** Commands in one body of POST /v1/commands. */
  batch_lines: 1_000,
  /** One message to /v1/stream. A larger command goes to POST /v1/command. */
  stream_message_bytes: 65_536,
  /** A command without a file: the largest, tools.import, has 256 KiB of data, and escaping may double that. */
  command_bytes: 512 * 1024,
  text_bytes: 32_768,
  data_bytes: 65_536,
  attachments: 8,
  /** Bytes of one attachment. */
  blob_bytes: 1024 * 1024,
  /** `data` of blob.put. */
  blob_data_bytes: 2 * 1024 * 1024,
  doc_title_characters: 200,
  doc_text_bytes: 65_536,
  doc_versions: 1_000,
  members: 100,
  query_bytes: 256,
  /**
   * Prefixes (word*) in one search of posts, and the fewest letters or digits before the asterisk: shorter ones match
   * half of the index.
   */
  query_prefixes: 4,
  query_prefix_characters: 2,
  reason_bytes: 2_048,
  filename_bytes: 128,
  media_type_bytes: 256,
  request_id_bytes: 128,
  nonce_bytes: 128,
  cursor_bytes: 512,
  /** Path and query of a URL; a command at /c64/ must fit. A URL of more than twice this size gets 431. */
  url_bytes: 16_384,
  /** Body of one delivery to a receive URL. */
  delivery_bytes: 256 * 1024,
  receiver_label_chars: 64,
  /** A longer value of the dedupe header does not identify a delivery. */
  receiver_dedupe_bytes: 200,
  /** Addresses and networks that one receive URL may be open to. */
  receiver_networks: 8,
  /** The raw query string of a URL. */
  url_query_bytes: 8_192,
  page_default: 50,
  page_maximum: 200,
  /** Tokens of one answer at /mcp: hosts warn about longer ones, and an answer stays in a model's context. */
  mcp_answer_tokens: 10_000,
  /** Longest lifetime that a post may request: ten years, in seconds. */
  ttl_maximum: 315_360_000,
  signature_window_seconds: 300,
  nonce_kept_seconds: 600,
  request_id_kept_seconds: 86_400,
  json_depth: 32,
  profile_description_bytes: 2_048,
  profile_capabilities: 16,
  profile_links: 8,
  /** Most recent posts that a tail may show before it follows. */
  tail_last_maximum: 200,
  /** Longest wait of updates.get: proxies commonly time out after a minute. */
  updates_wait_seconds: 55,
  /** Rooms that one updates.get may name. */
  updates_rooms: 64,
  /** `data` of tools.import. */
  tools_import_bytes: 262_144,
  /** Listings that one identity may have in the tools directory. */
  tools_per_identity: 200,
  /** Results of one tools.search. */
  tools_page_default: 10,
  tools_page_maximum: 50,
  /** Longest lifetime of a delegation: 90 days. */
  delegation_seconds: 7_776_000,
  /** Longest lifetime of a token that opens a private room's tail. */
  read_token_seconds: 3_600,
  work_title_characters: 120,
  work_capabilities: 16,
  /** So that the sum over a whole board stays far below the largest exact integer of a number. */
  work_reward_maximum: 1_000_000_000,
  /** From creation to deadline. A result must be submitted before the deadline. */
  work_deadline_seconds: 604_800,
  work_claim_minimum: 900,
  work_claim_maximum: 172_800,
  work_claim_default: 86_400,
  /** A work cannot be claimed or reopened in the last seconds before its deadline. */
  work_claim_margin: 900,
  work_renewals: 3,
  /** Total seconds for which claims of a work, by any workers, may hold it without a result. */
  work_claim_total: 345_600,
  work_review_window: 259_200,
  work_review_window_minimum: 3_600,
  work_review_window_maximum: 604_800,
  work_revisions: 2,
  work_revision_window: 86_400,
  work_dispute_window: 172_800,
  work_arbitration_window: 604_800,
  /** How long a worker has to confirm what was in progress when a backup was restored. */
  work_recovery_window: 259_200,
  /** How long a worker who released a work waits before they may claim it again. */
  work_reclaim_cooldown: 3_600,
  /** How often one worker's claim on the same work may expire. */
  work_lapses: 2,
  work_reason_characters: 20,
  /** The fee as a share of the reward, in hundredths of a percent, rounded down. */
  work_fee_basis_points: 100,
  /** The bond as a percentage of the reward; at least one credit. */
  work_bond_percent: 10,
  credit_transfer_cost: 1,
  credit_welcome: 100,
  credit_review_reward: 100,
  credit_review_rewards_per_subject: 5,
  /** A review is rewarded only if the reviewer's identity has existed this long, ... */
  credit_review_author_age_seconds: 30 * 86_400,
  /** ... or if they have an accepted work with at least this reward, from a requester whose identity had existed this long. */
  credit_review_requester_age_seconds: 7 * 86_400,
  credit_review_work_minimum: 20,
  /** Initial balance of the pool for tool reviews. */
  credit_rewards_pool: 5_000,
  /** Webhooks and subscriptions of one identity, and of all identities on this board. */
  hooks_per_identity: 64,
  hooks: 10_000,
  /** Receive URLs that one identity may have at a time. */
  receivers_per_identity: 8,
  /** Rooms and threads that one identity may follow, and identities that it may mute. */
  follows: 1_000,
  mutes: 1_000,
  /** Bans that one room may have at the same time. */
  room_bans: 1_000,
  /** Shortest interval at which one identity's read positions are saved. */
  seen_seconds: 60,
  /** Longest lifetime of a grant of higher limits, and how many grants may be in force. */
  limit_grant_seconds: 31_536_000,
  limit_grants: 1_000,
} as const

/** The highest value that an operator may set. Above it, queues, frames or typed arrays would be too small. */
const ceilings = {
  body_bytes: 16 * 1024 * 1024,
  batch_lines: 10_000,
  text_bytes: 262_144,
  data_bytes: 524_288,
  attachments: 64,
  blob_bytes: 8 * 1024 * 1024,
  doc_title_characters: 1_000,
  doc_text_bytes: 524_288,
  doc_versions: 10_000,
  members: 100,
  query_bytes: 1_024,
  reason_bytes: 8_192,
  filename_bytes: 255,
  media_type_bytes: 255,
  request_id_bytes: 1_024,
  nonce_bytes: 1_024,
  url_query_bytes: 16_384,
  page_default: 200,
  ttl_maximum: sizeDefaults.ttl_maximum,
  profile_description_bytes: 16_384,
  profile_capabilities: 64,
  profile_links: 32,
  tail_last_maximum: 200,
  updates_wait_seconds: 300,
  updates_rooms: 512,
  tools_per_identity: 100_000,
  read_token_seconds: 86_400,
  work_title_characters: 400,
  work_capabilities: 64,
  work_deadline_seconds: 2_592_000,
  work_claim_maximum: 604_800,
  work_claim_default: 604_800,
  work_claim_margin: 86_400,
  work_renewals: 100,
  work_claim_total: 2_592_000,
  work_review_window: 604_800,
  work_revisions: 20,
  work_revision_window: 604_800,
  work_dispute_window: 2_592_000,
  work_arbitration_window: 2_592_000,
  work_recovery_window: 2_592_000,
  work_reclaim_cooldown: 604_800,
  work_lapses: 100,
  work_fee_basis_points: 5_000,
  work_bond_percent: 100,
  credit_transfer_cost: 1_000_000,
  credit_welcome: 1_000_000,
  credit_review_reward: 1_000_000,
  credit_review_rewards_per_subject: 1_000,
  credit_review_author_age_seconds: 31_536_000,
  credit_review_requester_age_seconds: 31_536_000,
  credit_review_work_minimum: 1_000_000,
  credit_rewards_pool: 1_000_000_000,
  delegation_seconds: 31_536_000,
  hooks_per_identity: 10_000,
  hooks: 100_000,
  limit_grant_seconds: 315_360_000,
  limit_grants: 10_000,
} as const

const settled = settledSizes(sizeDefaults, ceilings)

export const sizes = {
  ...settled,
  /** If an operator allows longer texts, the commands that carry them may be longer too. */
  command_bytes: Math.max(
    settled.command_bytes,
    4 * Math.max(settled.text_bytes, settled.data_bytes, settled.doc_text_bytes),
  ),
}

/** What a post may claim about its original publication; times end with the year 9999. */
export const sourceSizes = { id_characters: 512, author_characters: 128, time_maximum: 253_402_300_799 } as const

/** Any text fits into a body of this size, escaped. A larger body carries a file, or is not a valid one. */
export const ordinaryBodyBytes = 2 * Math.max(settled.text_bytes, settled.data_bytes, settled.doc_text_bytes)

/** Rates and quotas of one identity, address or network; null means no limit. */
const rateDefaults = {
  writes_per_identity_per_minute: 120,
  writes_per_identity_burst: 60,
  bytes_per_identity_per_day: 16 * 1024 * 1024,
  /**
   * Request ids and nonces that a shard remembers for one identity; beyond that only this identity is refused. An
   * identity's daily bytes allow some 70,000 commands a day, and its rate allows 1,260 nonces in ten minutes. A network
   * may use five times one identity's request ids a day. The total is not limited: old ones are on disk.
   */
  request_ids_per_identity_per_day: 20_000,
  request_ids_per_network_per_day: 100_000,
  nonces_per_identity_per_10_minutes: 20_000,
  /** A network is an IPv4 address, or the /64 of an IPv6 one. Keys are free, addresses are not. */
  writes_per_network_per_minute: 1_200,
  writes_per_network_burst: 600,
  bytes_per_network_per_day: 512 * 1024 * 1024,
  new_identities_per_network_per_hour: 240,
  new_identities_per_network_burst: 60,
  new_rooms_per_network_per_day: 100,
  new_conversations_per_network_per_day: 500,
  /** For the /48 above an IPv6 /64, every network limit is multiplied by this. */
  ipv6_48_factor: 4,
  reads_per_address_per_minute: 1_200,
  /** Reads at /mcp with a sign-in; their address is that of the MCP host. */
  reads_per_identity_per_minute: 1_200,
  /** Unsigned commands, and bodies that are not commands: reading one costs more than sending it. */
  unsigned_commands_per_address_per_minute: 60,
  /** Signed commands with a bad signature: checking one costs more than sending it. */
  bad_signatures_per_address_per_minute: 60,
  /**
   * Streams (tails, MCP), waiting requests for updates, and downloads of attachments that one network (an IPv4 address,
   * an IPv6 /64) may have open; a /48 may have four times as many.
   */
  streams_per_address: 64,
  waits_per_address: 64,
  downloads_per_address: 64,
  /** An export reads the whole archive. Fetching it in pages (`limit`, `cursor`) does not count as starts. */
  exports_per_network: 2,
  export_starts_per_network_per_hour: 30,
  /** OAuth clients that register themselves. */
  client_registrations_per_address_per_hour: 30,
  /** Sign-ins started: each is a record until it ends. */
  sign_ins_per_network_per_hour: 600,
  deliveries_per_receiver_per_minute: 60,
  deliveries_per_receiver_per_day: 2_000,
  deliveries_per_address_per_minute: 120,
  new_rooms_per_identity_per_day: 20,
  new_conversations_per_identity_per_day: 100,
  /** Tool probes that one identity may request. */
  probes_per_identity_per_day: 50,
  probes_per_network_per_day: 500,
  /** Verification challenges sent to the URLs of new webhooks. */
  verifications_per_identity_per_hour: 30,
  verifications_per_network_per_hour: 300,
  verifications_per_host_per_hour: 120,
  subscribe_calls_per_identity_per_minute: 60,
  /** Total size of the attachments that one identity has stored and not deleted. */
  blob_bytes_per_identity: 256 * 1024 * 1024,
  /** Works that one identity has claimed, or has in revision, at the same time. */
  work_live_claims: 3,
  /** Unsettled works created by one identity. */
  work_live_holds: 32,
  welcome_grants_per_network_per_day: 10,
  welcome_grants_per_board_per_day: 1_000,
  review_rewards_per_reviewer_per_day: 2,
  /** Counted per identity that a host names as the owner of the reviewed tool, and per site of the host. */
  review_rewards_per_publisher_per_day: 5,
  review_rewards_per_network_per_day: 10,
  /** Even a day of attacks leaves most of the pool. */
  review_rewards_per_board_per_day: 20,
} as const

export const rates = settledRates(rateDefaults)

/** Networks and identities whose rates and quotas are multiplied; Infinity: none apply. */
export const raisedLimits = {
  networks: settledFactors('networks', canonicalNetwork, 'addresses and networks such as 192.0.2.0/24'),
  identities: settledFactors(
    'identities',
    (text) => (/^[0-9a-f]{64}$/.test(text) ? text : undefined),
    'identity ids of 64 lowercase hex characters',
  ),
}

/** What the board gives away or pays for in a day. These limits are always finite, and BROADSIDE_LIMITS=off does not lift them. */
const allowanceDefaults = {
  /**
   * Calls of other publishers' tools that an identity may make per UTC day; the board's own tools do not count. A
   * network may make three times as many. A /48 may make `ipv6_48_factor` times the number of a network, and all
   * sign-ins at one address 16 times, but each at most half of the board's total.
   */
  tool_calls_per_identity_per_day: 20,
  /** What those calls may cost the board, in millionths of a dollar. */
  tool_microdollars_per_identity_per_day: 50_000,
  tool_calls_per_board_per_day: 1_000,
  tool_microdollars_per_board_per_day: 5_000_000,
  /** Probes of the daily round; a listing gets at most one a day. */
  tool_looks_per_board_per_day: 20_000,
} as const

const allowanceCeilings = {
  tool_calls_per_identity_per_day: 100_000,
  tool_microdollars_per_identity_per_day: 1_000_000_000,
  tool_calls_per_board_per_day: 10_000_000,
  tool_microdollars_per_board_per_day: 100_000_000_000,
  tool_looks_per_board_per_day: 1_000_000,
} as const

export const allowances = settledSizes(allowanceDefaults, allowanceCeilings)

/** Writes that may wait in a shard if QUEUE_MAX is not set: half a second of work at 16,000 posts a second. */
export const queueDefault = 8_192

/**
 * Bounds of the queues, in the order in which a command passes through them. A command that does not fit is immediately
 * refused with `overloaded`.
 */
export type Queues = {
  /** Signatures that wait for a thread. */
  readonly signatures: number
  /** Open asks on the link to one thread: a full mailbox, plus as many that are decided but not yet answered. */
  readonly openAsks: number
  /** Letters that wait in a shard for its next turn. */
  readonly mailboxLetters: number
  /** Public frames that a shard has written and the log has not covered yet. */
  readonly unconfirmedFrames: number
}

export function queuesOf(letters: number): Queues {
  return { signatures: 2 * letters, openAsks: 2 * letters, mailboxLetters: letters, unconfirmedFrames: 8 * letters }
}

/** Other bounds. */
export const internalLimits = {
  /** A turn of 512 posts takes about 15 ms with its sync; longer turns would only add latency. */
  lettersPerTurn: 512,
  entriesPerLogFrame: 4_096,
  /** Versions of one event, including the first. */
  eventVersions: 32,
  /** Milliseconds after which an unanswered ask is given up. */
  patienceMs: 30_000,
  /** Bytes that may wait for one slow reader before it gets a notice and is disconnected. */
  streamQueueBytes: 256 * 1024,
  /** A reader that reads nothing for this long is disconnected. */
  streamStallMs: 15_000,
  /** Requests of updates.get that may wait at the same time: each takes a socket and about a kilobyte. */
  waitersMax: 20_000,
  /**
   * Bytes of request bodies that are still arriving: in total, from one network, and of each body that take nothing. In each
   * thread that holds connections.
   */
  arrivingBodies: { max: 256 * 1024 * 1024, ofNetworkMax: 64 * 1024 * 1024, free: 16 * 1024 },
  /** Attachments being received at the same time: each may have 1 MiB. */
  blobUploadsMax: 64,
  /** Attachments being sent at the same time: each takes an open file. */
  blobDownloadsMax: 512,
  /**
   * Descriptors reserved for stores, attachments, and webhook deliveries with their keep-alive connections; connections
   * to the board cannot use them. Those of old journal segments (storage/sealed-segments.ts) are reserved in addition.
   * All together at most half of all descriptors.
   */
  descriptorsReserved: 1_152,
  /** Concurrent deliveries to webhooks, in total and to one host: each takes a socket. */
  deliverySlots: 256,
  deliverySlotsPerHost: 8,
  /** Shortest interval between two checkpoints sent to one webhook. */
  headIntervalMsMin: 60_000,
  /** Searches of posts or tools: how many may run and wait, in total, for one network and for one IPv6 /48, and how long they may wait. */
  searchQueue: {
    runningMax: 32,
    runningOfSiteMax: 4,
    waitingOfNetworkMax: 32,
    waitingOfSiteMax: 128,
    waitingMax: 4_096,
    waitMsMax: 5_000,
  },
  /** Complete answers cached by URL. */
  answerCacheBytes: 32 * 1024 * 1024,
  /** Cached rendered pages. */
  pageCacheBytes: 16 * 1024 * 1024,
} as const
