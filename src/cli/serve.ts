/** `broadside serve` and `broadside follow`: run a board until it is stopped. A board that cannot start logs the reason in one line. */

import type { RunningServer } from '../board/server.ts'
import { pause, systemClock } from '../clock.ts'
import type { Config } from '../config.ts'
import { BadConfig, setFileThreads } from '../environment.ts'
import { explainFailure } from '../failure.ts'
import { log } from '../observe.ts'
import type { RefusedLead } from '../replication/may-lead.ts'
import { watchTurns } from '../runtime/slow-turns.ts'
import { boardSettings, misspelledSettings, settingsHelp, settingsOptions } from './board-settings.ts'
import {
  type Arguments,
  type Command,
  type ExitCode,
  exitCodes,
  keepAlive,
  print,
  type Terminal,
  UsageError,
} from './command-line.ts'

export const serveCommand: Command = {
  name: 'serve',
  summary:
    'Runs a board. Prints one line with its address when it is ready; SIGTERM, SIGHUP or Ctrl-C stops it cleanly.',
  usage: 'serve [options]',
  optionHelp: [
    ...settingsHelp,
    ['--port N', 'port; 0 picks a free one (default: PORT or 8787)'],
    ['--host NAME', 'address to listen at (default: HOST or 127.0.0.1)'],
    ['--limits on|off', 'off disables rates and quotas (default: BROADSIDE_LIMITS or on)'],
  ],
  example: 'broadside serve --data ./data --port 8787',
  notes: [
    'Settings, in the environment or in the file, besides those that the options name (broadside check-config explains them):',
    '  BASE_URL BOARD_NAME BOARD_ABOUT BOARD_CONTACT SERVICE_ID OPERATORS HTTP_ENGINE HTTP_THREADS SHARDS VERIFY_THREADS',
    '  PLACEMENT LIMITS PROOF_BITS LOG_LEVEL SLOW_TURN_MS TRUST_PROXY TRUST_PROXY_HOPS TRUST_PROXY_FROM',
    '  BLOB_BYTES_PER_IDENTITY DISK_RESERVE_BYTES SEGMENT_BYTES RECENT_EVENTS QUEUE_MAX COMPACT_SECONDS SCREEN_URL MCP_ORIGINS',
    '  SCRUB_BYTES_PER_SECOND',
    '  HEALTH_PORT METRICS_PORT MARK_FILE WITNESS_POLICY WITNESS_LOGS DELIVERY_WAIT_PERCENT BROADSIDE_LOOPBACK',
    '  REPLICATE REPLICATE_KEY_FILE REPLICATE_SYSTEM_KEY_FILE REPLICATE_ACK REPLICA_KEY_FILE FOLLOW',
    '  WALLET_KEY_FILE PAY_CAP_DAY PAY_NODES PAY_TO FACILITATOR_URL PAY_NETWORK PAY_PRICE',
  ],
  options: {
    ...settingsOptions,
    port: { type: 'string' },
    host: { type: 'string' },
    limits: { type: 'string' },
  },
  positionals: { min: 0, max: 0 },
  run: (args, terminal) => runBoard(args, terminal, leaderOf),
}

/** Boxes of one board may share their settings, including FOLLOW. */
async function leaderOf(config: Config): Promise<Config> {
  const { follow, lead, dataDirectory } = config
  if (follow === undefined) return config
  const [{ isLeaderDirectory }, { machine }] = await Promise.all([
    import('../board-directory.ts'),
    import('../platform.ts'),
  ])
  if (!isLeaderDirectory(machine.disk, dataDirectory))
    throw new BadConfig(
      `FOLLOW is set, but ${dataDirectory} contains no board that leads: start it with broadside follow. Only the first start of the first box is broadside serve, without FOLLOW.`,
    )
  // Only the stream can stop one of two leaders.
  if (lead === undefined)
    throw new BadConfig(
      'With FOLLOW, a board that leads needs REPLICATE, REPLICATE_KEY_FILE and REPLICATE_SYSTEM_KEY_FILE: set them, or leave FOLLOW out.',
    )
  log('info', 'follow.ignored', { note: 'This directory leads.' })
  return { ...config, follow: undefined, replication: lead }
}

export const followCommand: Command = {
  name: 'follow',
  summary: 'Runs a follower: a copy of another board that answers every read, and forwards its writes to that board.',
  usage: serveCommand.usage.replace('serve', 'follow'),
  optionHelp: [...serveCommand.optionHelp, ['--may-lead', 'become the leader if the current leader is gone']],
  example: 'FOLLOW=https://board.example REPLICA_KEY_FILE=replica.key broadside follow --data ./copy',
  notes: [
    'FOLLOW is the address of the board that is followed, and REPLICA_KEY_FILE a file that both have (broadside keygen --replica).',
    'REPLICATE and REPLICATE_KEY_FILE name the stream; without it everything comes from the board over HTTP. Everything else is as for broadside serve.',
    'With --may-lead one unit runs every box of a board: it leads if it was the last leader, and follows if another box has taken over.',
    'It takes over from a leader that acknowledges by quorum and is silent for 20 s, or that has handed over. It needs REPLICATE_ACK=quorum or copy,',
    'REPLICATE_SYSTEM_KEY_FILE, and the keys of the board in its directory.',
  ],
  options: { ...serveCommand.options, 'may-lead': { type: 'boolean' } },
  positionals: serveCommand.positionals,
  run: (args, terminal) => runBoard(args, terminal, (config) => followerOf(config, args.flag('may-lead'))),
}

function followerOf(config: Config, mayLead: boolean): Config {
  const { follow, lead } = config
  if (follow === undefined)
    throw new BadConfig('broadside follow needs FOLLOW, the address of the board that is followed.')
  if (mayLead && (lead === undefined || lead.ack === 'local'))
    throw new BadConfig(
      'broadside follow --may-lead needs REPLICATE_ACK=quorum or copy, with REPLICATE, REPLICATE_KEY_FILE and REPLICATE_SYSTEM_KEY_FILE of a board that publishes.',
    )
  // A follower's checkpoints are the leader's, so it needs no witnesses.
  return {
    ...config,
    follow: { ...follow, lead: mayLead ? lead : undefined },
    witnessPolicy: mayLead ? config.witnessPolicy : '',
  }
}

/** A stopped start may take this long to complete; then the board is stopped like a running one. */
const startWithinMs = 5_000

/** Undefined if the start is waiting for something, or replays for a long time. */
function startedInTime(starting: Promise<RunningServer>): Promise<RunningServer | undefined> {
  return Promise.race([starting, pause(systemClock, startWithinMs).then(() => undefined)])
}

/** Four, the default, leave most of a disk unused: src/DECISIONS.md. */
const fileThreads = 16

/** Runs a board until it is stopped. `chosen` throws BadConfig if this is the wrong command for these settings. */
async function runBoard(
  args: Arguments,
  terminal: Terminal,
  chosen: (given: Config) => Config | Promise<Config>,
): Promise<ExitCode> {
  setFileThreads(fileThreads)
  const limits = args.text('limits')
  if (limits !== undefined && limits !== 'on' && limits !== 'off') throw new UsageError('--limits takes on or off.')
  const portGiven = args.integer('port', { fallback: -1, min: 0, max: 65_535 })
  const stopped = new Promise<void>((done) => {
    // Not `once`, because a second signal would then have its default effect and interrupt the shutdown.
    process.on('SIGTERM', () => done())
    process.on('SIGINT', () => done())
    // Sent when a terminal is closed. Node resets what nohup has set, so SIGHUP would kill the process mid-write.
    process.on('SIGHUP', () => done())
  })
  try {
    const given = await chosen(await boardSettings(args))
    for (const [name, meant] of misspelledSettings()) log('warn', 'setting.unknown', { name, meant })
    watchTurns(given.slowTurnMs, { now: systemClock.monotonicMs, report: (turn) => log('warn', 'slow_turn', turn) })
    const config = {
      ...given,
      port: portGiven < 0 ? given.port : portGiven,
      host: args.text('host') ?? given.host,
      limitsOn: limits === undefined ? given.limitsOn : limits === 'on',
    }
    warnOfTestSettings(config)
    const running = config.follow?.lead ? runMember : runOnce
    await keepAlive<unknown>(running(config, terminal, stopped))
    return exitCodes.ok
  } catch (error) {
    log('error', 'not_started', explainFailure(error))
    return exitCodes.failed
  }
}

/** For whoever copied the settings of a test into those of a public board. */
function warnOfTestSettings({ loopback, limitsOn }: Config): void {
  const settings = [...(loopback ? ['BROADSIDE_LOOPBACK=1'] : []), ...(limitsOn ? [] : ['BROADSIDE_LIMITS=off'])]
  if (settings.length === 0) return
  const note =
    'These settings leave the board and its machine unprotected. Leave them out on a board that others can reach.'
  log('warn', 'setting.unprotected', { settings, note })
}

/** Runs a board until it is stopped, or until this follower finds its leader gone; then resolves with the last message of the stream. */
async function runOnce(
  config: Config,
  terminal: Terminal,
  stopped: Promise<void>,
  refusedLead?: RefusedLead,
): Promise<number | undefined> {
  const [{ startServer }, { withOwnPorts }, { machine }] = await Promise.all([
    import('../board/server.ts'),
    import('../http/own-ports.ts'),
    import('../platform.ts'),
  ])
  const starting = withOwnPorts(config, () => startServer(config, machine, refusedLead))
  const server = await Promise.race([starting, stopped.then(() => startedInTime(starting))])
  if (server === undefined) {
    // Nothing was answered yet, so there is nothing to finish.
    log('info', 'start.stopped', { note: 'The board was stopped before it was ready.' })
    return undefined
  }
  print(terminal, { address: server.address }, `Broadside is ready at ${server.address}\n`)
  const after = await Promise.race([stopped.then(() => undefined), server.vacant])
  await server.close()
  return after
}

/** Leads or follows, whichever applies, until it is stopped. */
async function runMember(config: Config, terminal: Terminal, stopped: Promise<void>): Promise<void> {
  const { isReplaced, leadAfter } = await import('./member.ts')
  const { follow, lead } = config
  for (let refused: RefusedLead | undefined; ; ) {
    const follows = await isReplaced(config, stopped)
    const own = follows
      ? { ...config, replication: undefined, follow, witnessPolicy: '' }
      : { ...config, replication: lead, follow: undefined }
    const after = await runOnce(own, terminal, stopped, refused)
    if (after === undefined) return
    refused = await leadAfter(config, after)
  }
}
