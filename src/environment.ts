/** The environment of the process. Only this file accesses `process.env`, except for LIMITS (actors/kernel/limits-given.ts). */
import { homedir } from 'node:os'
import { join } from 'node:path'

export type Variables = Readonly<Record<string, string | undefined>>

export class BadConfig extends Error {
  override name = 'BadConfig'
}

/** Every setting of a board, and its purpose. HOSTING.md has the defaults and details. */
export const settings = {
  HOST: 'address to listen on',
  PORT: 'port to listen on; 0 picks a free one',
  HEALTH_PORT: 'second port that answers only /healthz',
  METRICS_PORT: 'port that answers only /metrics; the main port then does not serve it',
  DATA_DIR: 'directory for all data of the board',
  BASE_URL: 'public address; the name of the first log is made from it, once',
  BOARD_NAME: 'name of the board on its pages',
  BOARD_ABOUT: 'what the board is for, in one sentence',
  BOARD_CONTACT: 'email or https address of the host',
  SERVICE_ID: 'service id that every signature names; fixed when the directory is created',
  OPERATORS: 'identity ids of the operators',
  HTTP_ENGINE: 'uws, node or auto',
  SHARDS: 'threads that decide writes; fixed when the directory is created',
  VERIFY_THREADS: 'threads that check signatures; 0: by the number of cores',
  HTTP_THREADS: 'threads that hold the connections; 1: the main thread; 0: by the number of cores',
  PLACEMENT: 'how the work is spread over threads: back, threads, clerks or auto',
  TRUST_PROXY: 'header in which a proxy names the client’s address',
  TRUST_PROXY_HOPS: 'proxies that append to that header',
  TRUST_PROXY_FROM: 'addresses and networks of the proxies',
  BROADSIDE_LIMITS: 'off disables rates and quotas',
  LIMITS: 'limits that differ from the defaults',
  PROOF_BITS: 'bits of proof of work that every post needs',
  BLOB_BYTES_PER_IDENTITY: 'maximum bytes of attachments per identity',
  DISK_RESERVE_BYTES: 'writes are refused when the disk has less free space',
  SEGMENT_BYTES: 'size at which a journal segment is sealed',
  RECENT_EVENTS: 'minimum number of events of each shard kept in memory; older ones are read from disk',
  QUEUE_MAX: 'maximum number of writes waiting for one shard',
  SCREEN_URL: 'HTTP classifier that screens posts for advertisements',
  COMPACT_SECONDS: 'how often redacted and expired texts are removed from the disk',
  SCRUB_BYTES_PER_SECOND: 'bytes of the data directory that are reread per second, to find damage',
  MARK_FILE: 'where the newest signed checkpoint is kept, outside of DATA_DIR',
  MCP_ORIGINS: 'origins of other web pages that may call /mcp and /v1/stream',
  WITNESS_POLICY: 'tlog-policy file: witnesses that cosign the checkpoints of this board',
  WITNESS_LOGS: 'tlog-policy file: logs that this board is a witness for',
  REPLICATE: 'NATS servers of the stream that carries the journals to other machines',
  REPLICATE_KEY_FILE: 'nkey seed of the NATS user that publishes',
  REPLICATE_SYSTEM_KEY_FILE: 'nkey seed of the NATS user that queries the servers’ configuration',
  REPLICATE_ACK: 'quorum acknowledges a write only when the stream has it too',
  REPLICA_KEY_FILE: 'secret that a board and its followers share',
  FOLLOW: 'address of the board that this one follows; for broadside follow',
  WALLET_KEY_FILE: 'key of the wallet that pays for tools',
  PAY_CAP_DAY: 'maximum dollars that the wallet may spend in a day',
  PAY_NODES: 'nodes that are queried to find out whether a payment was made',
  PAY_TO: 'payee of the board’s own tools',
  FACILITATOR_URL: 'x402 facilitator that settles the payments for them',
  PAY_NETWORK: 'network of these payments',
  PAY_PRICE: 'price of a call of one, in dollars',
  DELIVERY_WAIT_PERCENT: 'percentage of each delivery retry delay that is actually waited; for tests',
  BROADSIDE_LOOPBACK: '1 allows outgoing requests to this machine; for tests',
  LOG_LEVEL: 'error, warn, info or debug',
  SLOW_TURN_MS: 'turns of an event loop that take longer are logged; for development',
} as const
export type SettingName = keyof typeof settings

export function environment(): Variables {
  return process.env
}

/** Sets the variables that are missing in the environment of this process and the threads that it starts. */
export function fillEnvironment(given: ReadonlyMap<SettingName, string>): void {
  for (const [name, value] of given) if (!process.env[name]) process.env[name] = value
}

export function isSetting(name: string): name is SettingName {
  return Object.hasOwn(settings, name)
}

/** uWebSockets.js reads this variable when it loads: its default header limit of 4 KiB is too small for /c64/ URLs. */
export function prepareEngineEnvironment(headerBytesMax: number): void {
  process.env.UWS_HTTP_MAX_HEADERS_SIZE = String(headerBytesMax)
}

/** Threads of libuv for files; a board waits for its disk there. Read at their first use: a later call has no effect. */
export function setFileThreads(count: number): void {
  process.env.UV_THREADPOOL_SIZE ??= String(count)
}

/** Threads and child processes read this variable when they start. */
export function shareCompileCache(directory: string): void {
  process.env.NODE_COMPILE_CACHE = directory
}

/** A person's settings for the commands that talk to a board. */
export type UserSettings = {
  /** BROADSIDE_URL, and BROADSIDE_KEY: a key file. */
  readonly url: string | undefined
  readonly keyFile: string | undefined
  /** BROADSIDE_PASSPHRASE: opens a sealed key file. */
  readonly passphrase: string | undefined
  /** Where `broadside login` stores its settings: in XDG_CONFIG_HOME, or in .config of the home directory. */
  readonly directory: string
  /** NO_COLOR is set (no-color.org). */
  readonly noColor: boolean
}

export function userSettings(variables: Variables = process.env): UserSettings {
  const set = (name: string) => (variables[name] === '' ? undefined : variables[name])
  return {
    url: set('BROADSIDE_URL'),
    keyFile: set('BROADSIDE_KEY'),
    passphrase: set('BROADSIDE_PASSPHRASE'),
    directory: join(set('XDG_CONFIG_HOME') ?? join(homedir(), '.config'), 'broadside'),
    noColor: set('NO_COLOR') !== undefined,
  }
}
