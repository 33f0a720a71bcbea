/**
 * Configuration: reads the environment, and returns one frozen, validated value. Every variable has a default that works; an invalid value
 * is refused with a sentence that names the variable.
 */
import { isAbsolute, relative, resolve } from 'node:path'
import { queueDefault, rates } from '../actors/kernel/limits.ts'
import { limitsFault } from '../actors/kernel/limits-given.ts'
import { isAddressOrNetwork, isLoopbackHost } from '../actors/kernel/networks.ts'
import { capacityFor } from '../storage/snapshot.ts'
import { BadConfig, environment, type SettingName, type Variables } from './environment.ts'
import { usdc } from './money/networks.ts'
import { microsOf } from './money/price.ts'

/** `auto`: uws, or node with a warning in the log if uws has no binary for this platform. */
export type EngineChoice = 'auto' | 'uws' | 'node'

/**
 * `back`: the one shard and the log in one thread. `threads`: a separate thread for each shard and for the log. `clerks`: the same, and the
 * threads that verify signatures also parse commands.
 */
export type Placement = 'back' | 'clerks' | 'threads'

/** Threads that may hold connections. */
export const httpThreadsMax = 8

export type Config = {
  readonly host: string
  readonly port: number
  /** Port that also answers `/healthz` to HTTP/1.0 checks; undefined: only the board's own port answers it. */
  readonly healthPort: number | undefined
  /** Port that answers `/metrics`; undefined: the board's own port does. */
  readonly metricsPort: number | undefined
  /** Absolute, without a trailing slash. */
  readonly dataDirectory: string
  /** Where the high-water mark of the log is stored: next to the data directory, never in it. MARK_FILE may name another place. */
  readonly markFile: string
  /** tlog-policy files: the witnesses that sign our heads, and the logs for which we are a witness. */
  readonly witnessPolicy: string
  readonly witnessLogs: string
  /** As configured; if empty, derived from the host and the bound port. */
  readonly baseUrl: string
  readonly serviceId: string
  /** The board's name on pages, its purpose in one sentence, and how to reach its host; the last two may be empty. */
  readonly boardName: string
  readonly boardAbout: string
  readonly boardContact: string
  readonly operators: readonly string[]
  readonly engine: EngineChoice
  readonly shards: number
  readonly verifyThreads: number
  /** Threads that hold connections; 1: the main thread does; 0: chosen by the number of cores. */
  readonly httpThreads: number
  /** Where the actors run; `auto`: chosen by the number of cores. */
  readonly placement: 'auto' | Placement
  readonly trustedProxy: TrustedProxy
  readonly limitsOn: boolean
  /** Bits of work that every post must prove, 0 = none. */
  readonly proofBits: number
  readonly logLevel: 'error' | 'warn' | 'info' | 'debug'
  /** Event loop turns that take longer are reported with what ran in them; 0 disables this. */
  readonly slowTurnMs: number
  /** An HTTP classifier that screens posts instead of the rules of src/moderation; empty: the rules. */
  readonly screenUrl: string
  /** Bytes that the attachments of one identity may occupy in total. */
  readonly blobBytesPerIdentity: number
  /** Writes are refused if the disk has less free space than this. */
  readonly diskReserveBytes: number
  readonly segmentBytesMax: number
  /** In each shard, the rows of at least this many events are in memory, a power of two; older ones are on disk. */
  readonly recentEvents: number
  /** Seconds between two scans for redacted or expired texts that must leave the disk. */
  readonly compactSeconds: number
  /** Bytes that the scrubber reads per second, 0 to disable it. */
  readonly scrubBytesPerSecond: number
  /** Letters that may wait in a shard; the sizes of the other internal queues follow from it. */
  readonly queueMax: number
  /** Origins whose pages may call /mcp, in addition to the board's own. */
  readonly mcpOrigins: readonly string[]
  /** Outgoing calls may reach this machine and use plain http: for tests only. */
  readonly loopback: boolean
  /** File with the key of the wallet that pays for tools; empty: nothing is ever paid. */
  readonly walletKeyFile: string
  /** What the wallet may spend per UTC day, in millionths of a dollar. */
  readonly payCapMicros: number
  /** Addresses of nodes by CAIP-2 network, which are asked whether a payment without an answer was made. */
  readonly payNodes: ReadonlyMap<string, string>
  /** The terms of selling the board's own tools at /pay/tools/; undefined: they are not sold. */
  readonly sale:
    | { readonly payTo: string; readonly facilitator: string; readonly network: string; readonly micros: number }
    | undefined
  /** Undefined: the journals are not published. */
  readonly replication: ReplicationSettings | undefined
  /** Undefined: this board does not follow another. */
  readonly follow: FollowSettings | undefined
  /** Where this board publishes, or would publish as the leader. Undefined: nowhere. */
  readonly lead: ReplicationSettings | undefined
  /** File with the secret that a board and its followers share; empty: a board that leads accepts no followers. */
  readonly replicaKeyFile: string
  /** Factor for all waits between webhook delivery attempts: 1 except in tests, which cannot wait for hours. */
  readonly deliveryScale: number
}

/** NATS servers, and the file with the nkey seed of the user. */
export type StreamSettings = { readonly servers: readonly string[]; readonly keyFile: string }

/** Where the journals are published, and with which credentials. */
export type ReplicationSettings = StreamSettings & {
  /**
   * When a write is answered and shown: after a sync of this board's disk; also after the stream's acknowledgment; or also after a sync of
   * a follower's disk.
   */
  readonly ack: 'local' | 'quorum' | 'copy'
  /** File with the nkey seed of the user that queries the configuration of the servers. */
  readonly systemKeyFile: string
}

/** Whether a board with these settings has followers, which take its journals from it. */
export function acceptsFollowers({ follow, replicaKeyFile }: Pick<Config, 'follow' | 'replicaKeyFile'>): boolean {
  return follow === undefined && replicaKeyFile !== ''
}

/** The boards that a follower follows. */
export type FollowSettings = {
  /** Origins of the boxes, of which one leads. */
  readonly leaders: readonly string[]
  /** File with the secret by which the leader recognizes its followers. */
  readonly keyFile: string
  /** Undefined: only the leader is queried. */
  readonly stream: StreamSettings | undefined
  /** How it publishes after replacing a missing leader. Undefined: it never leads. */
  readonly lead: ReplicationSettings | undefined
}

/** One or several proxies in front of the board. */
export type TrustedProxy = {
  /** Lower-case name of the header, or '' for none. */
  readonly header: string
  /** How many proxies append to the header: 1 for a single one. */
  readonly hops: number
  /** Addresses and networks of the proxies, in CIDR notation. */
  readonly from: readonly string[]
}

/** Environment variables, each validated when it is read. An empty one counts as missing. */
class Environment {
  readonly #variables: Variables
  /** The values read so far, as given or by default. */
  readonly values = new Map<SettingName, string>()

  constructor(variables: Variables) {
    this.#variables = variables
  }

  text(name: SettingName, fallback = ''): string {
    const given = this.#variables[name]
    const value = given === undefined || given === '' ? fallback : given
    this.values.set(name, value)
    return value
  }

  /** One line of text, with a maximum number of characters. */
  line(name: SettingName, fallback: string, charactersMax: number): string {
    const given = this.text(name, fallback).trim()
    if ([...given].length > charactersMax || /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u.test(given))
      throw new BadConfig(
        `${name} must be one line of at most ${charactersMax} characters, without control characters, but it is "${given}".`,
      )
    return given
  }

  number(name: SettingName, fallback: number, min: number, max: number): number {
    const given = this.text(name, String(fallback))
    const value = Number(given)
    if (!Number.isInteger(value) || value < min || value > max) {
      throw new BadConfig(
        `${name} must be an integer from ${min} to ${max}, but it is "${given}". Set a valid value, or leave it out for ${fallback}.`,
      )
    }
    return value
  }

  choice<Choice extends string>(name: SettingName, choices: readonly Choice[], fallback: Choice): Choice {
    const given = this.text(name, fallback)
    const found = choices.find((each) => each === given)
    const named = choices.filter((each) => each !== '').join(', ')
    const rule = choices.some((each) => each === '') ? `${named}, or left out` : `one of ${named}`
    if (found === undefined) throw new BadConfig(`${name} must be ${rule}, but it is "${given}".`)
    return found
  }

  /** Millionths of a dollar. */
  dollars(name: SettingName, fallback: string): number {
    const given = this.text(name, fallback)
    const micros = microsOf(given)
    if (micros === undefined) throw new BadConfig(`${name} must be dollars such as 2.50, but it is "${given}".`)
    return micros
  }

  /** A comma-separated list. */
  list(name: SettingName): string[] {
    return this.text(name)
      .split(',')
      .map((each) => each.trim())
      .filter((each) => each !== '')
  }
}

/** `data`: the directory given to a command instead of DATA_DIR. Throws BadConfig. */
export function readConfig(data = '', variables: Variables = environment()): Config {
  return configOf(new Environment(variables), data)
}

/** Every setting as given or by default, validated as at a start. Throws BadConfig. */
export function readSettings(variables: Variables = environment()): ReadonlyMap<SettingName, string> {
  const env = new Environment(variables)
  configOf(env, '')
  env.text('LIMITS')
  return env.values
}

function configOf(env: Environment, data: string): Config {
  const fault = limitsFault()
  if (fault !== undefined) throw new BadConfig(fault)
  return Object.freeze({
    ...identityOf(env),
    ...networkOf(env),
    ...storageOf(env, data),
    ...loadOf(env),
    ...paymentsOf(env),
    ...replicationOf(env),
    screenUrl: screenUrlOf(env),
    logLevel: env.choice('LOG_LEVEL', ['error', 'warn', 'info', 'debug'] as const, 'info'),
    slowTurnMs: env.number('SLOW_TURN_MS', 0, 0, 60_000),
    witnessPolicy: env.text('WITNESS_POLICY'),
    witnessLogs: env.text('WITNESS_LOGS'),
    deliveryScale: env.number('DELIVERY_WAIT_PERCENT', 100, 0, 100) / 100,
    loopback: env.choice('BROADSIDE_LOOPBACK', ['', '1'] as const, '') === '1',
  })
}

/** The board's identity, and its host. */
function identityOf(
  env: Environment,
): Pick<Config, 'serviceId' | 'operators' | 'boardName' | 'boardAbout' | 'boardContact'> {
  const operators = env.list('OPERATORS')
  for (const id of operators) {
    if (!/^[0-9a-f]{64}$/.test(id))
      throw new BadConfig(
        `OPERATORS must be identity ids of 64 hex characters, separated by commas, but one is "${id}".`,
      )
  }
  const serviceId = env.text('SERVICE_ID')
  if (serviceId !== '' && !/^[a-z0-9][a-z0-9._-]{0,63}$/.test(serviceId)) {
    throw new BadConfig(
      `SERVICE_ID must be 1 to 64 of a-z 0-9 . _ -, starting with a letter or digit, but it is "${serviceId}".`,
    )
  }
  const boardContact = env.text('BOARD_CONTACT')
  if (boardContact !== '' && !isContact(boardContact))
    throw new BadConfig(`BOARD_CONTACT must be an email address or an https:// address, but it is "${boardContact}".`)
  return {
    serviceId,
    operators,
    boardName: env.line('BOARD_NAME', 'Broadside', 60),
    boardAbout: env.line('BOARD_ABOUT', '', 200),
    boardContact,
  }
}

function isContact(given: string): boolean {
  if (given.length > 200) return false
  if (/^[^\s@<>"]+@[^\s@<>"]+\.[^\s@<>".]+$/.test(given)) return true
  return given.startsWith('https://') && URL.canParse(given)
}

type Network = 'host' | 'port' | 'healthPort' | 'metricsPort' | 'baseUrl' | 'engine' | 'trustedProxy' | 'mcpOrigins'

/** Where the board listens, and the addresses under which it is known. */
function networkOf(env: Environment): Pick<Config, Network> {
  const mcpOrigins = env.list('MCP_ORIGINS')
  for (const origin of mcpOrigins) {
    if (!URL.canParse(origin) || new URL(origin).origin !== origin)
      throw new BadConfig(
        `MCP_ORIGINS must be origins such as https://client.example, separated by commas, but one is "${origin}".`,
      )
  }
  return {
    host: env.text('HOST', '127.0.0.1'),
    port: env.number('PORT', 8787, 0, 65_535),
    healthPort: env.text('HEALTH_PORT') === '' ? undefined : env.number('HEALTH_PORT', 0, 0, 65_535),
    metricsPort: env.text('METRICS_PORT') === '' ? undefined : env.number('METRICS_PORT', 0, 0, 65_535),
    baseUrl: originOf(env.text('BASE_URL')),
    engine: env.choice('HTTP_ENGINE', ['auto', 'uws', 'node'] satisfies EngineChoice[], 'auto'),
    trustedProxy: trustedProxyOf({
      header: env.text('TRUST_PROXY').toLowerCase(),
      hops: env.number('TRUST_PROXY_HOPS', 1, 1, 16),
      from: env
        .text('TRUST_PROXY_FROM', '127.0.0.0/8,::1')
        .split(',')
        .map((network) => network.trim()),
    }),
    mcpOrigins,
  }
}

type Storage =
  | ('dataDirectory' | 'markFile' | 'blobBytesPerIdentity' | 'diskReserveBytes' | 'compactSeconds')
  | ('segmentBytesMax' | 'recentEvents' | 'scrubBytesPerSecond')

function storageOf(env: Environment, data: string): Pick<Config, Storage> {
  const dataDirectory = resolve(data === '' ? env.text('DATA_DIR', './data') : data)
  const { MAX_SAFE_INTEGER } = Number
  return {
    dataDirectory,
    markFile: markFileOf(env, dataDirectory),
    blobBytesPerIdentity: env.number(
      'BLOB_BYTES_PER_IDENTITY',
      Math.min(rates.blob_bytes_per_identity, MAX_SAFE_INTEGER),
      0,
      MAX_SAFE_INTEGER,
    ),
    diskReserveBytes: env.number('DISK_RESERVE_BYTES', 256 * 1024 * 1024, 0, MAX_SAFE_INTEGER),
    compactSeconds: env.number('COMPACT_SECONDS', 60, 1, 86_400),
    scrubBytesPerSecond: env.number('SCRUB_BYTES_PER_SECOND', 1024 * 1024, 0, 1024 * 1024 * 1024),
    segmentBytesMax: env.number('SEGMENT_BYTES', 64 * 1024 * 1024, 65_536, 1024 * 1024 * 1024),
    recentEvents: capacityFor(env.number('RECENT_EVENTS', 262_144, 16, 16_777_216)),
  }
}

function markFileOf(env: Environment, dataDirectory: string): string {
  const markFile = resolve(env.text('MARK_FILE', `${dataDirectory}.mark`))
  const path = relative(dataDirectory, markFile)
  if (path === '..' || path.startsWith('../') || isAbsolute(path)) return markFile
  throw new BadConfig(
    `MARK_FILE is ${markFile}, which is inside of DATA_DIR. An old copy of that directory would bring its own old mark, so the mark could not detect it. Set MARK_FILE to a path outside, such as ${dataDirectory}.mark, and move the file there if it exists.`,
  )
}

/** How many threads it uses, and how much it admits. */
function loadOf(
  env: Environment,
): Pick<Config, 'shards' | 'verifyThreads' | 'httpThreads' | 'placement' | 'queueMax' | 'limitsOn' | 'proofBits'> {
  return {
    shards: env.number('SHARDS', 0, 0, 64),
    verifyThreads: env.number('VERIFY_THREADS', 0, 0, 64),
    httpThreads: env.number('HTTP_THREADS', 0, 0, httpThreadsMax),
    placement: env.choice('PLACEMENT', ['auto', 'back', 'clerks', 'threads'] as const, 'auto'),
    queueMax: env.number('QUEUE_MAX', queueDefault, 1, 65_536),
    limitsOn: env.choice('BROADSIDE_LIMITS', ['on', 'off'] as const, 'on') === 'on',
    proofBits: env.number('PROOF_BITS', 0, 0, 28),
  }
}

function paymentsOf(env: Environment): Pick<Config, 'walletKeyFile' | 'payCapMicros' | 'payNodes' | 'sale'> {
  return {
    walletKeyFile: env.text('WALLET_KEY_FILE'),
    payCapMicros: env.dollars('PAY_CAP_DAY', '1'),
    payNodes: nodesOf(env.text('PAY_NODES')),
    sale: saleOf({
      payTo: env.text('PAY_TO'),
      facilitator: env.text('FACILITATOR_URL').replace(/\/+$/, ''),
      network: env.text('PAY_NETWORK', 'eip155:8453'),
      micros: env.dollars('PAY_PRICE', '0.001'),
    }),
  }
}

function replicationOf(env: Environment): Pick<Config, 'replication' | 'follow' | 'lead' | 'replicaKeyFile'> {
  const servers = serversOf(env)
  const leaders = leadersOf(env)
  const follows = leaders.length > 0
  const file = (name: SettingName): string => env.text(name) && resolve(env.text(name))
  const keyFile = file('REPLICATE_KEY_FILE')
  const systemKeyFile = file('REPLICATE_SYSTEM_KEY_FILE')
  const replicaKeyFile = file('REPLICA_KEY_FILE')
  const ack = ackOf(env)
  if (servers.length > 0 && follows && keyFile === '')
    throw new BadConfig(
      'REPLICATE needs REPLICATE_KEY_FILE, a file with the nkey seed of a user that reads the stream.',
    )
  if (servers.length > 0 && !follows && (keyFile === '' || systemKeyFile === ''))
    throw new BadConfig('REPLICATE needs REPLICATE_KEY_FILE and REPLICATE_SYSTEM_KEY_FILE, two files with nkey seeds.')
  const stream = servers.length === 0 ? undefined : { servers, keyFile }
  const lead = stream && systemKeyFile !== '' ? { ...stream, ack, systemKeyFile } : undefined
  if (env.text('REPLICATE_ACK') !== '' && lead === undefined)
    throw new BadConfig(
      'REPLICATE_ACK is for a board that publishes or may lead: it needs REPLICATE and REPLICATE_SYSTEM_KEY_FILE. Set them, or leave it out.',
    )
  if (!follows) return { replication: lead, follow: undefined, lead, replicaKeyFile }
  if (replicaKeyFile === '')
    throw new BadConfig('FOLLOW needs REPLICA_KEY_FILE, the file with the secret that it shares with its leader.')
  // What a witness has seen of other logs is stored on one box only.
  const refused = lead === undefined ? (['WITNESS_POLICY', 'WITNESS_LOGS'] as const) : (['WITNESS_LOGS'] as const)
  for (const name of refused)
    if (env.text(name) !== '')
      throw new BadConfig(`${name} belongs to the board that is followed: leave it out with FOLLOW.`)
  const follow = { leaders, keyFile: replicaKeyFile, stream, lead: undefined }
  return { replication: undefined, follow, lead, replicaKeyFile }
}

function serversOf(env: Environment): string[] {
  const servers = env.list('REPLICATE')
  for (const server of servers) {
    if (!URL.canParse(server) || !/^(nats|tls):$/.test(new URL(server).protocol) || new URL(server).username !== '')
      throw new BadConfig(
        'REPLICATE must be addresses of NATS servers such as tls://n1.example:4222, separated by commas, without passwords.',
      )
  }
  return servers
}

function ackOf(env: Environment): ReplicationSettings['ack'] {
  const ack = env.text('REPLICATE_ACK')
  if (ack === '') return 'local'
  if (ack === 'local' || ack === 'quorum' || ack === 'copy') return ack
  throw new BadConfig(`REPLICATE_ACK must be local, quorum or copy. It is "${ack}".`)
}

/** The content of private rooms is transferred too, so plain http is allowed only for loopback, where a tunnel may end. */
function leadersOf(env: Environment): string[] {
  const leaders = env.list('FOLLOW').map((each) => each.replace(/\/+$/, ''))
  for (const leader of leaders) {
    const url = URL.canParse(leader) ? new URL(leader) : undefined
    const isHere = url?.protocol === 'http:' && isLoopbackHost(url.hostname)
    if (url?.origin !== leader || (url.protocol !== 'https:' && !isHere))
      throw new BadConfig(
        `FOLLOW must be the https address of the board that is followed, without a path, such as https://board.example; plain http only on this machine. Where several may lead, the addresses of all of them, separated by commas. One is "${leader}".`,
      )
  }
  return leaders
}

function screenUrlOf(env: Environment): string {
  const screenUrl = env.text('SCREEN_URL')
  if (screenUrl !== '' && !isWebAddress(screenUrl))
    throw new BadConfig(`SCREEN_URL must be the http(s) address of a classifier, but it is "${screenUrl}".`)
  return screenUrl
}

function isWebAddress(given: string): boolean {
  return URL.canParse(given) && /^https?:$/.test(new URL(given).protocol)
}

/** An origin as browsers write it, or ''. Anything else in an address would be lost, or printed where it must not be. */
function originOf(given: string): string {
  // Some tools give "/" for "no other place".
  if (given === '' || given === '/') return ''
  const url = isWebAddress(given) ? new URL(given) : undefined
  const asOrigin = url === undefined ? '' : `${url.protocol}//${url.host}`
  if (url?.href.replace(/\/+$/, '') !== asOrigin)
    throw new BadConfig(
      `BASE_URL must be http(s)://host[:port] and nothing else, but it is "${given.replace(/\/\/[^/]*@/, '//…@')}".`,
    )
  return asOrigin
}

function trustedProxyOf(proxy: TrustedProxy): TrustedProxy {
  if (!/^[!#$%&'*+.^_`|~0-9a-z-]*$/.test(proxy.header))
    throw new BadConfig(
      `TRUST_PROXY must be the name of one header such as X-Forwarded-For, but it is "${proxy.header}".`,
    )
  const bad = proxy.from.find((network) => !isAddressOrNetwork(network))
  if (bad !== undefined)
    throw new BadConfig(
      `TRUST_PROXY_FROM must be addresses and networks such as 10.0.0.0/8, separated by commas, but one is "${bad}".`,
    )
  return proxy
}

/** Undefined if neither payee nor facilitator is named. */
function saleOf(sale: NonNullable<Config['sale']>): Config['sale'] {
  const { payTo, facilitator, network } = sale
  if (usdc[network] === undefined)
    throw new BadConfig(`PAY_NETWORK must be one of ${Object.keys(usdc).join(', ')}, but it is "${network}".`)
  if (payTo === '' && facilitator === '') return undefined
  if (facilitator === '')
    throw new BadConfig(
      'PAY_TO needs FACILITATOR_URL, the address of an x402 facilitator. Set both, or leave both out.',
    )
  if (payTo === '') throw new BadConfig('FACILITATOR_URL needs PAY_TO, the payee. Set both, or leave both out.')
  if (!/^0x[0-9a-fA-F]{40}$/.test(payTo))
    throw new BadConfig(`PAY_TO must be an address of 0x and 40 hex digits, but it is "${payTo}".`)
  if (!isWebAddress(facilitator))
    throw new BadConfig(`FACILITATOR_URL must be the address of an x402 facilitator, but it is "${facilitator}".`)
  return sale
}

/** `eip155:8453=https://…`, separated by commas. */
function nodesOf(given: string): ReadonlyMap<string, string> {
  const nodes = new Map<string, string>()
  for (const each of given.split(',').filter((part) => part.trim() !== '')) {
    const [, network = '', url = ''] = /^\s*(eip155:[1-9]\d*)=(\S+)\s*$/.exec(each) ?? []
    if (!isWebAddress(url))
      throw new BadConfig(
        `PAY_NODES must be networks and the addresses of their nodes, such as eip155:8453=https://node.example, but one is "${each}".`,
      )
    nodes.set(network, url)
  }
  return nodes
}
