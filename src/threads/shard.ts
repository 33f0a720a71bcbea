/** A shard's thread: opens its journal, replays it, and wires it to the main thread and to the log. Wiring only. */
import type { MessagePort } from 'node:worker_threads'
import { deciders } from '../../actors/deciders.ts'
import { inside, type Queues, rates } from '../../actors/kernel/limits.ts'
import { Link } from '../../actors/kernel/link.ts'
import { type Confirmation, type FirstRoom, type Head, Shard, type ShardAnswer, shardOf } from '../../actors/shard.ts'
import { WorkDelivery } from '../../actors/works/delivery.ts'
import { type Shares, scarceShare, type WriteLetter } from '../../actors/write.ts'
import { readBlob } from '../../storage/blob-files.ts'
import { freeBytes } from '../../storage/disk.ts'
import { reachOf } from '../../storage/snapshot.ts'
import { openWhole } from '../../storage/whole-decisions.ts'
import { type BoardIdentity, shardSnapshotsDirectory } from '../board-directory.ts'
import { monotonicMs, readingSeconds, wallSeconds } from '../clock.ts'
import { type BackfillRequest, backfill } from '../follow/backfill.ts'
import { type UpdatesRequest, updatesPage } from '../follow/rows.ts'
import { BoardSigner } from '../format/board-signer.ts'
import { CursorSealer } from '../format/cursor.ts'
import type { ReadContext, ReadRequest } from '../reads/read.ts'
import { answerRead } from '../reads/reads.ts'
import { eachNamed, inTurn } from '../runtime/slow-turns.ts'
import { answerHooks, type HooksAsk } from '../webhooks/payloads/answer.ts'
import { again } from './again.ts'
import { Compactor } from './compactor.ts'
import { readFault, report, runThread, tellKnown } from './entry.ts'
import { PrivateNews, type ShardNews, type ShardTell } from './private-news.ts'
import { SnapshotKeeper } from './snapshots.ts'

export type ShardThread = {
  readonly number: number
  /** How many there are. */
  readonly shards: number
  readonly directory: string
  /** Files of attachments. */
  readonly blobs: string
  readonly cursorKey: Uint8Array
  readonly generation: string
  readonly serviceId: string
  /** The board's own: notices of works are signed where they are posted. */
  readonly identity: BoardIdentity
  readonly diskReserveBytes: number
  readonly segmentBytesMax: number
  /** Seconds between two looks for texts that have to leave the disk. */
  readonly compactSeconds: number
  readonly queues: Queues
  /** Rates and quotas hold. */
  readonly limitsOn: boolean
  /** Rooms of this shard that exist from the first start. */
  readonly firstRooms: readonly FirstRoom[]
  readonly front: MessagePort
  readonly log: MessagePort
}

/** What the log says to a shard. */
export type FromLog = ['resume', number] | ['confirm', Confirmation]
/** What a shard says to the log: its journal is durable up to here; or sealed segments of it were rewritten. */
export type ToLog = number | 'rewritten'

/** What the main thread asks a shard of its private rooms. */
export type ShardAsk =
  | readonly ['read', ReadRequest]
  | readonly ['updates', UpdatesRequest]
  | readonly ['tail', BackfillRequest]
  | readonly ['hooks', HooksAsk]
type FromFront = readonly ['write', WriteLetter] | ShardAsk

const retryShares: Shares = {
  requestIds: { most: rates.request_ids_per_identity_per_day, scarce: scarceShare },
  nonces: { most: rates.nonces_per_identity_per_10_minutes, scarce: scarceShare },
}

/** How long a reading of the disk's free space counts. */
const diskLookMs = 500

runThread((data: ShardThread) => {
  const journal = openWhole({
    directory: data.directory,
    segmentBytesMax: data.segmentBytesMax,
    knownDurable: (journalId) => reachOf(shardSnapshotsDirectory(data.directory), journalId),
    report: ({ kind, ...facts }) => report('info', `journal.${kind}`, { shard: data.number, ...facts }),
  })
  // Log and feed continue while the state is made; in an empty journal the first rooms come first.
  const opened = journal.nextSeq - 1
  if (opened > 0) tellKnown({ through: opened })
  const log = new Link({
    port: data.log,
    openMax: 1,
    patienceMs: inside.patienceMs,
    now: monotonicMs,
    onTell: (body) => hear(body as FromLog),
  })
  const snapshots = SnapshotKeeper.open(shardSnapshotsDirectory(data.directory), journal.id, journal.nextSeq - 1)
  const signature = new BoardSigner(data)
  let delivery: WorkDelivery | undefined
  const shard = new Shard({
    number: data.number,
    journal,
    snapshot: () => snapshots.take(),
    afterTurn: (seq, acted) => {
      snapshots.after(seq, () => shard.pack())
      news.afterTurn(acted)
    },
    firstRooms: data.firstRooms,
    mail: (state, record) => {
      delivery = new WorkDelivery({
        state,
        record,
        isHere: (actor) => shardOf(actor, data.shards) === data.number,
        sign: (fields, cause) => signature.signed(fields, cause),
        board: data.identity.id,
        generation: data.generation,
        carry: (letters) => front.tell(['carry', letters] satisfies ShardNews),
        requested: (requested) => front.tell(['requested', requested] satisfies ShardNews),
        atRest: () => front.tell(['at rest'] satisfies ShardNews),
        report: (facts) => report('warn', 'work.not_said', { shard: data.number, ...facts }),
      })
      return delivery
    },
    deciders: eachNamed(deciders),
    again,
    wallSeconds,
    diskHasRoom: diskWatch(data),
    fault: (damage) => readFault(damage).refusal.message,
    toLog: (through) => {
      log.tell(through satisfies ToLog)
      log.flush()
    },
    mailboxMax: data.queues.mailboxLetters,
    lettersPerTurnMax: inside.lettersPerTurn,
    unconfirmedMax: data.queues.unconfirmedFrames,
    ...(data.limitsOn ? { shares: retryShares } : {}),
  })
  const compactor = new Compactor({
    shard: data.number,
    journal,
    directory: data.directory,
    state: shard.state,
    everySeconds: data.compactSeconds,
    onRewritten: () => log.tell('rewritten' satisfies ToLog),
    onDestroyed: (slots) => {
      const unneeded = shard.state.blobs.unneededAfter(slots)
      if (unneeded.length > 0) front.tell(['unneeded', unneeded] satisfies ShardNews)
    },
  })
  const hear = (said: FromLog): void => {
    if (said[0] === 'confirm') shard.confirm(said[1])
    else shard.resume(said[1])
  }
  const cursors = new CursorSealer(data.cursorKey)
  /** Identity -> handle, from the main thread: the claims are in the journal of the registry's shard. */
  const handles = new Map<string, string>()
  const context: ReadContext = {
    state: shard.state,
    board: shard.board,
    body: (slot: number) => shard.read(shard.board.events.place[slot]!),
    blobFile: (room: string, sha256: string) => readBlob(data.blobs, room, sha256),
    frame: (_shard: number, seq: number) => shard.read(seq),
    cursors,
    generation: data.generation,
    serviceId: data.serviceId,
    handleOf: (identity) => handles.get(identity),
    now: readingSeconds,
    visibility: 'private',
  }
  const news = new PrivateNews(context, (told) => front.tell(told))
  const answer = ([kind, asked]: ShardAsk): unknown => {
    try {
      if (kind === 'updates') return updatesPage(context, asked)
      if (kind === 'hooks') return answerHooks(context, asked)
      return kind === 'tail' ? backfill(context, asked) : answerRead(context, asked)
    } catch (error) {
      return readFault(error)
    }
  }
  const front = new Link({
    port: data.front,
    openMax: 1,
    patienceMs: inside.patienceMs,
    now: monotonicMs,
    onAsk: (body, id) => {
      const asked = body as FromFront
      if (asked[0] !== 'write') return inTurn(asked[0], () => front.answer(id, answer(asked)))
      shard.post(asked[1], (answered: ShardAnswer, head?: Head) => front.answer(id, answered, head))
    },
    onTell: (body) => {
      const told = body as ShardTell
      if (told[0] === 'handles') for (const [identity, handle] of told[1]) handles.set(identity, handle)
      else if (told[0] === 'carried' || told[0] === 'release') {
        if (told[0] === 'release') delivery!.release()
        else delivery!.carried(told[1], told[2], told[3])
        shard.wake()
      } else news.hear(told)
    },
  })
  return {
    facts: { through: journal.nextSeq - 1, rooms: shard.board.rooms.size, events: shard.board.events.count },
    stop: () => {
      compactor.close()
      front.close()
      log.close()
      snapshots.keep(journal.nextSeq - 1, () => shard.pack())
      journal.close()
    },
  }
})

function diskWatch({ directory, diskReserveBytes }: ShardThread): () => boolean {
  let lookedAt = Number.NEGATIVE_INFINITY
  let hasRoom = true
  return () => {
    const now = monotonicMs()
    if (now - lookedAt < diskLookMs) return hasRoom
    lookedAt = now
    const free = freeBytes(directory)
    if (hasRoom !== free >= diskReserveBytes)
      report('warn', 'disk.room', { free_bytes: free, reserve_bytes: diskReserveBytes, writable: !hasRoom })
    hasRoom = free >= diskReserveBytes
    return hasRoom
  }
}
