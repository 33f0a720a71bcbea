/**
 * Creates a board from the lines of `/v1/export?stream=board`: the same records under the same ids, in one journal, with a new log whose
 * first entry names the head of the original log.
 *
 * `import.json` is in the directory until the import is complete, and no board starts from such a directory. The journal grows by one
 * record for each line, so an interrupted import continues where the journal ends.
 */
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { noLeaf } from '../../actors/log/public-records.ts'
import { importEntry } from '../../actors/log/rotation.ts'
import type { ImportedVotesFacts } from '../../actors/posts/marks.ts'
import { keptEntry } from '../../actors/records/entry.ts'
import {
  type BoardRecord,
  type FactRecord,
  type Facts,
  RecordType,
  registryName,
  stubOf,
  toFrame,
} from '../../actors/records/record.ts'
import { State } from '../../actors/state.ts'
import type { SentArgs } from '../../actors/works/letters.ts'
import { changeOf, codes, transferId } from '../../actors/works/market/ledger.ts'
import { isOfMarket, type MarketFacts, marketName, movesWork, type Posting } from '../../actors/works/market/letters.ts'
import type { Disk } from '../../storage/disk.ts'
import { Journal, JournalReader, type NewFrame, STUB } from '../../storage/journal.ts'
import {
  type BoardFacts,
  blobsDirectory,
  boardKeyFile,
  importFile,
  makeBoard,
  readFacts,
  readSecret,
  shardDirectory,
  UnusableDirectory,
  writeBoardFacts,
} from '../board-directory.ts'
import type { Config } from '../config.ts'
import { type Head, opened, type TakenRecord, takenRecord } from '../export/board-lines.ts'
import type { EndLine, RecordLine, UnreadableLine, VotesLine } from '../format/board-schema.ts'
import { foreignJson } from '../format/foreign-json.ts'
import { nextOrigin, SignedLog } from '../log/signed-log.ts'
import type { Platform } from '../platform.ts'
import { BadLine, type Line, RecordChecks } from './checks.ts'

/** Size of one write. */
const batchBytes = 1024 * 1024

export type ImportOptions = Pick<Config, 'dataDirectory' | 'segmentBytesMax' | 'serviceId'> & {
  readonly platform: Pick<Platform, 'clock' | 'random' | 'disk'>
  /** `host[:port]` of the public address, from which the log gets its name. */
  readonly publicHost: string
  /** The secret of the old board's identity (keys/board.key); with it, the board keeps its service id. */
  readonly boardKey: Buffer | undefined
  /** Unix seconds. */
  readonly now: number
}

/** The content of import.json. */
type StartedImport = { readonly head: Head; readonly at: number }

export type Imported = {
  readonly facts: BoardFacts
  readonly vkey: string
  readonly rooms: number
  readonly identities: number
  readonly events: number
  readonly blobs: number
  readonly documents: number
  readonly works: number
  readonly tools: number
  /** Lines that an earlier run had written. */
  readonly before: number
  /** Texts and files missing from the lines. */
  readonly gone: number
  /** Credits granted so that no account is negative, to replace what works of private rooms had paid. */
  readonly granted: number
}

/** The import begun in this directory; undefined if there is none. Throws UnusableDirectory if it contains anything else. */
export function startedImport(disk: Disk, path: string): StartedImport | undefined {
  const file = importFile(path)
  if (disk.fileExists(file)) return foreignJson(disk.readWhole(file).toString('utf8')) as StartedImport
  const found = disk.fileExists(path) ? [...disk.listFiles(path), ...disk.listDirectories(path)] : []
  if (found.some((name) => name !== 'LOCK'))
    throw new UnusableDirectory(
      `${path} is not empty, and an import overwrites nothing. Name a new directory with --data.`,
    )
  return undefined
}

/** The caller holds the lock of the directory. */
export class BoardImport {
  readonly #options: ImportOptions
  readonly #started: StartedImport
  readonly #facts: BoardFacts
  readonly #identity: Buffer
  readonly #journal: Journal
  /** Frames that an earlier run has written. */
  readonly #known: number
  readonly #state = new State()
  readonly #checks = new RecordChecks(this.#state)
  #frames: NewFrame[] = []
  #bytes = 0
  #seq = 0
  #change = 0
  #leaf = 0
  #lines = 1
  #gone = 0
  #granted = 0
  #before = 0
  /** Records of the market of which rooms need not be notified. */
  readonly #notifiedSeqs: number[] = []
  #hasVotes = false
  #isEnded = false

  /** Throws UnusableDirectory, and the errors of Journal.open. */
  constructor(options: ImportOptions, head: Head) {
    this.#options = options
    const { dataDirectory: path, platform, segmentBytesMax } = options
    const { disk } = platform
    this.#started = startedImport(disk, path) ?? this.#start(head)
    if (JSON.stringify(this.#started.head) !== JSON.stringify(head))
      throw new UnusableDirectory(
        `${path} contains an interrupted import of another file. Import that file again, or name a new directory with --data.`,
      )
    this.#facts = disk.fileExists(join(path, 'board.json')) ? readFacts(disk, path) : this.#make(head)
    this.#identity = createHash('sha256')
      .update(readSecret(disk, boardKeyFile(path)))
      .digest()
    disk.makeDirectory(shardDirectory(path, 0))
    this.#journal = Journal.open({ disk, directory: shardDirectory(path, 0), segmentBytesMax, takesStubs: true })
    this.#known = this.#journal.nextSeq - 1
    this.#addImportRecord(head)
  }

  /** Throws BadLine, UnusableDirectory and DiskFull. */
  take(line: Line): void {
    if (this.#isEnded) throw new BadLine('it follows the line of type end')
    switch (line.type) {
      case 'board':
        throw new BadLine('a second line of type board')
      case 'end':
        return this.#end(line as EndLine)
      case 'votes':
        this.#lines++
        return this.#votes(line as VotesLine)
      case 'unreadable':
        this.#lines++
        return this.#unreadable(line as UnreadableLine)
      default:
        this.#lines++
        if (this.#hasVotes) throw new BadLine('a record follows the votes')
        return this.#record(line as RecordLine)
    }
  }

  /** When it returns, everything is on disk and the board may start. Throws BadLine if the last line is missing. */
  finish(): Imported {
    if (!this.#isEnded) throw new BadLine('the file ends without a line of type end: it is truncated')
    this.#markRoomsNotified()
    this.#write()
    this.#journal.close()
    const { dataDirectory: path, platform } = this.#options
    const { disk } = platform
    const vkey = this.#sign()
    const facts = { ...readFacts(disk, path), delegations_ended: this.#started.at }
    writeBoardFacts(disk, path, facts)
    disk.removeFile(importFile(path))
    const { board, blobs, documents, market, tools } = this.#state
    return {
      facts,
      vkey,
      rooms: board.rooms.size,
      identities: board.authors.size,
      events: board.events.count,
      blobs: blobs.count,
      documents: documents.count,
      works: [...market.all].length,
      tools: tools.count,
      before: this.#before,
      gone: this.#gone,
      granted: this.#granted,
    }
  }

  /** Call after an error: what was written stays for the next run. */
  close(): void {
    this.#write()
    this.#journal.close()
  }

  #start(head: Head): StartedImport {
    const { dataDirectory: path, platform, now } = this.#options
    const begun = { head, at: now }
    platform.disk.makeDirectory(path)
    platform.disk.writeAtomic(importFile(path), Buffer.from(`${JSON.stringify(begun)}\n`))
    return begun
  }

  #make(head: Head): BoardFacts {
    const { dataDirectory: path, platform, boardKey, publicHost } = this.#options
    const { disk, random } = platform
    if (boardKey !== undefined && !disk.fileExists(boardKeyFile(path))) {
      disk.makeDirectory(join(path, 'keys'))
      disk.writeAtomic(boardKeyFile(path), Buffer.from(`${boardKey.toString('hex')}\n`), 0o600)
    }
    const serviceId = boardKey === undefined ? this.#options.serviceId : head.service_id
    const now = this.#started.at
    // Two logs with the same name would contradict each other.
    const isSameAddress = head.log.origin.startsWith(`${publicHost}/`)
    const origin = isSameAddress ? nextOrigin(head.log.origin, now, '') : undefined
    if (isSameAddress && origin === undefined)
      throw new UnusableDirectory(
        `The log names of this year are used up at ${publicHost}. Import it next year, or set another BASE_URL.`,
      )
    return makeBoard({
      disk,
      path,
      serviceId,
      publicHost,
      shards: 1,
      now,
      random,
      ...(origin === undefined ? {} : { origin }),
    })
  }

  #addImportRecord({ log }: Head): void {
    const { origin, size } = log
    const entry = importEntry(this.#started.at, { origin, size, root: Buffer.from(log.root, 'hex') })
    this.#add(this.#ownRecord('board.import', registryName, { origin, size, root: log.root }), [entry], true)
  }

  #record(line: RecordLine): void {
    const reserved = 'reserved' in line ? (line.reserved as RecordLine) : undefined
    if (reserved !== undefined) this.#reserve(reserved)
    const taken = takenRecord(line, reserved === undefined ? undefined : this.#seq)
    if (opened.is(taken.record) && reserved === undefined) throw new BadLine('work.open has no reserved')
    const isKnown = this.#seq < this.#known
    this.#checks.check(taken, line, isKnown)
    if (isOfMarket(taken.record)) this.#grantMissing(taken.record.facts)
    if (taken.isGone) this.#gone++
    if (taken.file !== undefined) this.#keepFile(taken.record, taken.file, isKnown)
    this.#put(taken, true)
    if (isKnown) this.#before++
    const { record } = taken
    if (isOfMarket(record) && movesWork(record)) this.#notifiedSeqs.push(this.#seq)
  }

  /** A lost file is like one that was taken down. Without a record, later ones would not follow. */
  #unreadable({ id, room, seq, file, error }: UnreadableLine): void {
    if (file === true) return
    const named = id === undefined ? '' : ` ${id}`
    const place = seq === undefined || room === undefined ? '' : ` (number ${seq} of room ${room})`
    throw new BadLine(
      `the record${named}${place} is damaged on the disk of the old board, which says: ${error}. A board cannot be made without it: export from a follower or from a restored backup`,
    )
  }

  /** The signed request of a work, which the market accepted before its room did. */
  #reserve(line: RecordLine): void {
    const taken = takenRecord(line)
    if (!isOfMarket(taken.record) || taken.record.op !== 'work.create')
      throw new BadLine('reserved is not a work.create')
    this.#grantMissing(taken.record.facts)
    this.#checks.check(taken, line, this.#seq < this.#known)
    this.#put(taken, false)
  }

  #votes({ event, up, down }: VotesLine): void {
    this.#hasVotes = true
    this.#checks.votes({ type: 'votes', event, up, down })
    const id = Buffer.from(event, 'hex')
    const facts: ImportedVotesFacts = { id, up, down }
    const { board } = this.#state
    const room = board.roomList[board.events.room(board.events.find(id))]!.name
    this.#add(this.#ownRecord('votes.import', room, facts), [], true)
  }

  #end({ lines }: EndLine): void {
    if (lines !== this.#lines) throw new BadLine(`lines is ${lines}, but there are ${this.#lines} before it`)
    this.#isEnded = true
  }

  /** Works of private rooms are in no export, but whoever was paid for one still has the credits. */
  #grantMissing({ steps = [], postings = [] }: MarketFacts): void {
    const { ledger } = this.#state.market
    const moved = [...steps.flatMap((step) => step.postings), ...postings].filter(
      ({ id }) => ledger.hold(id) === undefined,
    )
    for (const name of new Set(moved.map(({ debit }) => debit))) {
      if (name === 'mint' || name === 'escrow') continue
      const change = changeOf(moved, name, 1, (id) => ledger.hold(id)?.amount ?? heldIn(moved, id))
      const missing = -(ledger.available(name) + change)
      if (missing <= 0) continue
      const cause = `import ${this.#seq + 1}`
      const posting: Posting = {
        ...{ id: transferId(name, cause, 0), ledger: 1, type: 'direct', code: codes.grant },
        ...{ debit: 'mint', credit: name, amount: missing, at: this.#started.at },
      }
      this.#granted += missing
      this.#add(this.#ownRecord('credit.grant', marketName, { target: name, postings: [posting] }), [], false)
    }
  }

  /** Stores the file before the record that names it. */
  #keepFile(record: BoardRecord, file: Buffer, isKnown: boolean): void {
    const { sha256, size } = (record as FactRecord).facts as { readonly sha256?: unknown; readonly size?: unknown }
    const found = createHash('sha256').update(file).digest()
    if (!(sha256 instanceof Uint8Array) || !found.equals(sha256) || size !== file.length)
      throw new BadLine('facts/sha256 and facts/size are not those of the file in signed/signed_payload')
    if (isKnown) return
    const { disk } = this.#options.platform
    const directory = join(blobsDirectory(this.#options.dataDirectory), record.room)
    const path = join(directory, found.toString('hex'))
    if (disk.fileExists(path)) return
    disk.makeDirectory(directory)
    disk.writeAtomic(path, file, 0o600)
  }

  /** What rooms were told about works on the other board is already in their records. */
  #markRoomsNotified(): void {
    const facts: SentArgs = { seqs: this.#notifiedSeqs }
    if (this.#notifiedSeqs.length > 0) this.#add(this.#ownRecord('mail.sent', marketName, facts), [], false)
  }

  /** A record created by this import. */
  #ownRecord(op: string, room: string, facts: Facts): TakenRecord {
    const record: FactRecord = { type: RecordType.act, room, at: this.#started.at, author: this.#identity, op, facts }
    const key = createHash('sha256')
      .update(`${op} ${this.#seq + 1}`)
      .digest()
      .subarray(0, 16)
    return { record, key, entries: [], isGone: false, file: undefined }
  }

  #add(taken: TakenRecord, entries: readonly Buffer[], isPublic: boolean): void {
    this.#put({ ...taken, entries }, isPublic)
  }

  #put({ record, key, entries, isGone }: TakenRecord, isPublic: boolean): void {
    const kept = entries.map((entry) => keptEntry(entry, key))
    const made = toFrame(record, key, isPublic, kept)
    const frame = isGone ? stub(made) : made
    const seq = ++this.#seq
    if (isPublic) this.#change++
    const leaf = entries.length === 0 ? noLeaf : this.#leaf
    this.#leaf += entries.length
    try {
      this.#state.apply(record, key, { shard: 0, seq, change: isPublic ? this.#change : 0, leaf })
    } catch (error) {
      throw new BadLine(`it does not follow from the lines before it (${(error as Error).message})`)
    }
    if (seq <= this.#known) return this.#compare(seq, frame)
    this.#frames.push(frame)
    this.#bytes += frame.payload.length
    if (this.#bytes >= batchBytes) this.#write()
  }

  #compare(seq: number, { flags, payload }: NewFrame): void {
    const known = this.#journal.read(seq)
    if (known?.flags === flags && known.payload.equals(payload)) return
    throw new UnusableDirectory(
      `${this.#options.dataDirectory} contains an interrupted import of another file. Import that file again, or name a new directory with --data.`,
    )
  }

  #write(): void {
    if (this.#frames.length > 0) this.#journal.append(this.#frames)
    this.#frames = []
    this.#bytes = 0
  }

  /** Creates the log of the new board, over all records. Returns its verifier key. */
  #sign(): string {
    const { dataDirectory, segmentBytesMax, platform } = this.#options
    const { disk, clock, random } = platform
    const { origin } = this.#facts
    const log = SignedLog.open({
      ...{ disk, random, dataDirectory, origin, segmentBytesMax, marks: [], begin: () => 1, report: () => {} },
    })
    const reader = JournalReader.open(disk, shardDirectory(dataDirectory, 0))
    try {
      reader.advance(this.#seq)
      log.cover([reader], [this.#seq], clock)
      return log.vkey
    } finally {
      reader.close()
      log.close()
    }
  }
}

/** Credits of a hold that is among the same postings. */
function heldIn(postings: readonly Posting[], hold: string): number {
  return postings.find(({ id, type }) => id === hold && type === 'hold')?.amount ?? 0
}

/** What compaction leaves of a record whose signed bytes are gone. */
function stub(frame: NewFrame): NewFrame {
  const digest = createHash('sha256').update(frame.payload).digest()
  const kept = stubOf({ ...frame, seq: 0, payload: Buffer.from(frame.payload) })
  return { ...frame, flags: frame.flags | STUB, payload: Buffer.concat([digest, frame.payload.subarray(0, 16), kept]) }
}
