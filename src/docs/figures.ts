/** Metrics of a running board: /api/stats for people, /metrics for Prometheus. Public records only. */
import type { ThreadUsage } from '../../actors/kernel/supervisor.ts'
import { type Durations, durationBounds } from '../observe.ts'
import { release } from '../release.ts'

/** The content of /api/stats. */
export type Stats = {
  readonly rooms: number
  readonly identities: number
  readonly events: number
  readonly blobs: number
  readonly documents: number
  readonly tools: number
  /** Unix seconds. */
  readonly checkpointAt: number
  /** Public works by current state; states without works are left out. */
  readonly works: Readonly<Record<string, number>>
  readonly treeSize: number
  readonly streamsOpen: number
  readonly uptimeSeconds: number
}

/** The content of /metrics. */
export type Figures = Stats & {
  readonly change: number
  readonly streamsDropped: number
  readonly socketsOpen: number
  readonly connections: number
  readonly openLetters: number
  /** Reports that no operator has resolved. */
  readonly openReports: number
  /** Webhook deliveries that are queued. */
  readonly deliveriesWaiting: number
  /** Public changes that were accepted but are not visible to readers yet. */
  readonly feedLag: number
  /** On a follower: how long its leader has had newer data, or has been unreachable; undefined on other boards. */
  readonly behindSeconds?: number | undefined
  readonly signaturesWaiting: number
  readonly residentBytes: number
  readonly processorSeconds: number
  /** On the disk with the data directory. */
  readonly diskFreeBytes: number
  readonly threads: readonly (readonly [name: string, usage: ThreadUsage])[]
  /** How long signed commands took, by operation. */
  readonly durations: readonly (readonly [operation: string, durations: Durations])[]
  readonly counters: readonly (readonly [name: string, count: number])[]
  /** What the operator must know. */
  readonly notices: readonly string[]
  /** Refusals by limits since the start, by the name of the limit. */
  readonly limited: readonly (readonly [limit: string, count: number])[]
}

/** Before the first count. */
export const nothingCounted = {
  rooms: 0,
  identities: 0,
  events: 0,
  blobs: 0,
  documents: 0,
  tools: 0,
  checkpointAt: 0,
  works: {},
  change: 0,
} as const satisfies Partial<Figures>

export function statsData(figures: Stats) {
  const { rooms, identities, events, blobs, documents, tools, works, treeSize, checkpointAt } = figures
  const byState = Object.fromEntries(Object.entries(works).map(([state, count]) => [`works_${state}`, count]))
  const counts = { rooms, identities, events, blobs, documents, tools, works: sumOf(works), ...byState }
  const log = { log_size: treeSize, checkpoint_at: checkpointAt }
  return { stats: { ...counts, ...log, streams_open: figures.streamsOpen, uptime_seconds: figures.uptimeSeconds } }
}

/** Counters of the scrubber: the bytes it has read, and the name prefix for its findings. */
export const scrubbedCounter = 'scrubbed_bytes'
export const scrubFoundCounter = 'scrub_found_'

/** The name prefix of the counters of closed connections, followed by the code. */
export const closedCounter = 'sockets_closed_'

type Metric = readonly [name: string, kind: 'gauge' | 'counter', help: string, value: number]

/** Metrics with one sample each. */
function singles(figures: Figures): readonly Metric[] {
  return [
    ['rooms', 'gauge', 'Public rooms.', figures.rooms],
    ['identities', 'gauge', 'Identities with public activity.', figures.identities],
    ['events', 'gauge', 'Public events.', figures.events],
    ['blobs', 'gauge', 'Public attachments that are not deleted.', figures.blobs],
    ['documents', 'gauge', 'Public documents that are not deleted.', figures.documents],
    ['tools', 'gauge', 'Tools in the directory.', figures.tools],
    ['works', 'gauge', 'Public works.', sumOf(figures.works)],
    ['log_size', 'gauge', 'Leaves in the public log.', figures.treeSize],
    ['change', 'gauge', 'Number of the newest public change.', figures.change],
    ['streams_open', 'gauge', 'Open tails of public rooms.', figures.streamsOpen],
    [
      'streams_dropped_total',
      'counter',
      'Tails of public rooms closed because their reader did not keep up.',
      figures.streamsDropped,
    ],
    ['sockets_open', 'gauge', 'Open connections of /v1/stream.', figures.socketsOpen],
    ['connections_open', 'gauge', 'Open connections.', figures.connections],
    ['letters_open', 'gauge', 'Messages waiting for an actor.', figures.openLetters],
    ['reports_open', 'gauge', 'Reports that no operator has resolved.', figures.openReports],
    ['deliveries_waiting', 'gauge', 'Deliveries of webhooks that are queued.', figures.deliveriesWaiting],
    ['feed_lag_changes', 'gauge', 'Public changes that were accepted and are not readable yet.', figures.feedLag],
    ['signatures_waiting', 'gauge', 'Signatures waiting for a verification thread.', figures.signaturesWaiting],
    ['uptime_seconds', 'gauge', 'Seconds since the start.', figures.uptimeSeconds],
    ['resident_bytes', 'gauge', 'Resident memory of the process.', figures.residentBytes],
    ['processor_seconds_total', 'counter', 'Processor time of the process.', figures.processorSeconds],
    ['disk_free_bytes', 'gauge', 'Free space on the disk of the data directory.', figures.diskFreeBytes],
    [
      'checkpoint_time_seconds',
      'gauge',
      'When the newest entry of the public log was made, as Unix time.',
      figures.checkpointAt,
    ],
  ]
}

export function metricsText(figures: Figures): string {
  const counted = (prefix: string, label: string): Sample[] => countedBy(figures, prefix, label)
  const perThread = (figureOf: (usage: ThreadUsage) => number): Sample[] =>
    figures.threads.map(([thread, usage]): Sample => [`thread="${thread}"`, figureOf(usage)])
  return [
    family('build_info', 'gauge', 'The release that runs, and its Node.', [
      [`version="${release}",node="${process.versions.node}"`, 1],
    ]),
    ...singles(figures).map(([name, kind, help, value]) => family(name, kind, help, [['', value]])),
    ...(figures.behindSeconds === undefined
      ? []
      : [
          family(
            'behind_seconds',
            'gauge',
            'For how long this follower has been behind the leader, or without a connection to it.',
            [['', figures.behindSeconds]],
          ),
        ]),
    family(
      'heap_bytes',
      'gauge',
      'Heap in use by thread.',
      perThread(({ heapBytes }) => heapBytes),
    ),
    family(
      'thread_active_seconds_total',
      'counter',
      'How long the event loop of a thread was busy.',
      perThread(({ activeSeconds }) => activeSeconds),
    ),
    family('replies_total', 'counter', 'Answers by status.', counted('replies_', 'status')),
    family(
      'sockets_closed_total',
      'counter',
      'Ended connections of /v1/stream by the close code that the board sent, 0 if it sent none.',
      counted(closedCounter, 'code'),
    ),
    family(
      'limited_total',
      'counter',
      'Requests that a rate or quota refused, by its name at /capabilities.',
      figures.limited.map(([limit, count]): Sample => [`reason="${limit}"`, count]),
    ),
    ...found(figures),
    durations(figures),
  ].join('')
}

/** The counters whose names have this prefix. */
function countedBy({ counters }: Figures, prefix: string, label: string): Sample[] {
  return counters
    .filter(([name]) => name.startsWith(prefix))
    .map(([name, count]): Sample => [`${label}="${name.slice(prefix.length)}"`, count])
}

/** What the board has detected about its disk and its clock. */
function found(figures: Figures): string[] {
  const { counters, notices } = figures
  return [
    family('scrubbed_bytes_total', 'counter', 'Bytes that the scrubber has read again.', [
      ['', counters.find(([name]) => name === scrubbedCounter)?.[1] ?? 0],
    ]),
    family(
      'scrub_found_total',
      'counter',
      'Damaged files that the scrubber found, by kind.',
      countedBy(figures, scrubFoundCounter, 'kind'),
    ),
    family(
      'notice',
      'gauge',
      'Notices for the operator, in words at /healthz.',
      notices.map((name): Sample => [`name="${name}"`, 1]),
    ),
  ]
}

type Sample = readonly [labels: string, value: number]

/** One metric with its samples. */
function family(name: string, kind: string, help: string, samples: readonly Sample[]): string {
  const rows = samples.map(([labels, value]) => `broadside_${name}${labels === '' ? '' : `{${labels}}`} ${value}\n`)
  return `# HELP broadside_${name} ${help}\n# TYPE broadside_${name} ${kind}\n${rows.join('')}`
}

function durations({ durations: all }: Figures): string {
  const name = 'broadside_command_duration_seconds'
  const help = `# HELP ${name} Time from the arrival of a signed command to its answer, by operation.\n# TYPE ${name} histogram\n`
  const rows = all.flatMap(([operation, { counts, sumSeconds }]) => {
    let sum = 0
    const buckets = counts.map((count, at) => {
      sum += count
      return `${name}_bucket{operation="${operation}",le="${durationBounds[at] ?? '+Inf'}"} ${sum}\n`
    })
    return [
      ...buckets,
      `${name}_sum{operation="${operation}"} ${sumSeconds}\n`,
      `${name}_count{operation="${operation}"} ${sum}\n`,
    ]
  })
  return help + rows.join('')
}

function sumOf(counts: Readonly<Record<string, number>>): number {
  return Object.values(counts).reduce((sum, count) => sum + count, 0)
}
