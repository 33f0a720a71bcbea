/** Figures of a running board: /api/stats for people, /metrics for Prometheus. Public records only. */

export type Figures = {
  readonly rooms: number
  readonly identities: number
  readonly events: number
  readonly blobs: number
  readonly documents: number
  readonly tools: number
  /** Unix seconds. */
  readonly checkpointAt: number
  /** Public works by the state that they are in now; those that there are none of are left out. */
  readonly works: Readonly<Record<string, number>>
  readonly change: number
  readonly treeSize: number
  readonly streamsOpen: number
  readonly streamsDropped: number
  readonly socketsOpen: number
  readonly connections: number
  readonly openLetters: number
  readonly signaturesWaiting: number
  readonly uptimeSeconds: number
  readonly residentBytes: number
  readonly heaps: readonly (readonly [thread: string, bytes: number])[]
  readonly counters: readonly (readonly [name: string, count: number])[]
  /** What limits refused since the start, by the name of the limit. */
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

export function statsData(figures: Figures) {
  const { rooms, identities, events, blobs, documents, tools, works, treeSize, checkpointAt } = figures
  const byState = Object.fromEntries(Object.entries(works).map(([state, count]) => [`works_${state}`, count]))
  const counts = { rooms, identities, events, blobs, documents, tools, works: sumOf(works), ...byState }
  const log = { log_size: treeSize, checkpoint_at: checkpointAt }
  return { stats: { ...counts, ...log, streams_open: figures.streamsOpen, uptime_seconds: figures.uptimeSeconds } }
}

/** Begins the name of a counter of closed connections, before the code. */
export const closedCounter = 'sockets_closed_'

type Metric = readonly [name: string, kind: 'gauge' | 'counter', help: string, value: number]

export function metricsText(figures: Figures): string {
  const metrics: Metric[] = [
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
    ['signatures_waiting', 'gauge', 'Signatures waiting for a verification thread.', figures.signaturesWaiting],
    ['uptime_seconds', 'gauge', 'Seconds since the start.', figures.uptimeSeconds],
    ['resident_bytes', 'gauge', 'Resident memory of the process.', figures.residentBytes],
  ]
  const lines = metrics.map(
    ([name, kind, help, value]) =>
      `# HELP broadside_${name} ${help}\n# TYPE broadside_${name} ${kind}\nbroadside_${name} ${value}\n`,
  )
  const heaps = figures.heaps.map(([thread, bytes]) => `broadside_heap_bytes{thread="${thread}"} ${bytes}\n`)
  const replies = figures.counters
    .filter(([name]) => name.startsWith('replies_'))
    .map(([name, count]) => `broadside_replies_total{status="${name.slice(8)}"} ${count}\n`)
  const heapHelp = '# HELP broadside_heap_bytes Heap in use by thread.\n# TYPE broadside_heap_bytes gauge\n'
  const limited = figures.limited.map(([limit, count]) => `broadside_limited_total{reason="${limit}"} ${count}\n`)
  const limitedHelp =
    '# HELP broadside_limited_total Requests that a rate or quota refused, by its name at /capabilities.\n# TYPE broadside_limited_total counter\n'
  const closed = figures.counters
    .filter(([name]) => name.startsWith(closedCounter))
    .map(([name, count]) => `broadside_sockets_closed_total{code="${name.slice(closedCounter.length)}"} ${count}\n`)
  const closedHelp =
    '# HELP broadside_sockets_closed_total Ended connections of /v1/stream by the code that the board closed them with, 0: it did not.\n# TYPE broadside_sockets_closed_total counter\n'
  const repliesHelp = '# HELP broadside_replies_total Answers by status.\n# TYPE broadside_replies_total counter\n'
  return [lines, heapHelp, heaps, repliesHelp, replies, closedHelp, closed, limitedHelp, limited].flat().join('')
}

function sumOf(counts: Readonly<Record<string, number>>): number {
  return Object.values(counts).reduce((sum, count) => sum + count, 0)
}
