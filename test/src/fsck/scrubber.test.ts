/** The scrubber, pass by pass, over a board's files that a test changes, on a disk that fails as the test says. */
import { createHash } from 'node:crypto'
import {
  appendFileSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { expect, test } from 'vitest'
import { blobsDirectory, logDirectory, nodesFile, shardDirectory } from '../../../src/board-directory.ts'
import { Scrubber } from '../../../src/fsck/scrubber.ts'
import { Notices } from '../../../src/notices.ts'
import { Counters } from '../../../src/observe.ts'
import { compactSegment } from '../../../storage/compaction.ts'
import type { Disk } from '../../../storage/disk.ts'
import { type Frame, Journal, type NewFrame } from '../../../storage/journal.ts'
import { machineDisk } from '../../../storage/machine-disk.ts'
import { indexPath, listSegments, segmentPath } from '../../../storage/segment.ts'
import { TreeWriter } from '../../../storage/tree.ts'
import { numberedFrame } from '../../support/frames.ts'
import { flipByte, scratchDirectory } from '../../support/scratch.ts'

const segmentBytesMax = 4_000
const leaves = 300
const hourMs = 3_600_000

const fileName = (bytes: string): string => createHash('sha256').update(bytes).digest('hex')

/** Four batches to a segment. */
function grow(journal: Journal, segments: number, change: Partial<NewFrame> = {}): void {
  for (let batch = 0; batch < 4 * segments; batch++)
    journal.append(Array.from({ length: 5 }, (_, n) => ({ ...numberedFrame(journal.nextSeq + n), ...change })))
}

/** The files of a board with several segments in each journal, attachments in a room, and a tree. */
class Files {
  readonly directory = scratchDirectory()
  readonly shard = shardDirectory(this.directory, 0)
  readonly nodes = nodesFile(logDirectory(this.directory))
  readonly room = join(blobsDirectory(this.directory), 'den')
  /** File names that records mention. */
  readonly needed = new Set(['one', 'two'].map(fileName))

  constructor() {
    for (const directory of [this.shard, logDirectory(this.directory)]) {
      const journal = this.open(directory)
      grow(journal, 5)
      journal.close()
    }
    mkdirSync(this.room, { recursive: true })
    for (const bytes of ['one', 'two']) writeFileSync(this.attachment(bytes), bytes)
    const tree = TreeWriter.open(machineDisk, this.nodes, 0)
    tree.append(Array.from({ length: leaves }, (_, n) => createHash('sha256').update(`${n}`).digest()))
    tree.close()
  }

  open(directory = this.shard): Journal {
    return Journal.open({ disk: machineDisk, directory, segmentBytesMax })
  }

  firstSeq(n: number): number {
    return listSegments(machineDisk, this.shard, 'log').at(n)!
  }

  segment(n: number): string {
    return segmentPath(this.shard, this.firstSeq(n))
  }

  index(n: number): string {
    return indexPath(this.shard, this.firstSeq(n))
  }

  attachment(bytes: string): string {
    return join(this.room, fileName(bytes))
  }
}

type Found = { readonly path: string; readonly kind: string; readonly problem: string; readonly derived: boolean }

/** A scrubber whose hours pass when a test says so. */
class Passes {
  readonly ended: string[] = []
  readonly mended: string[] = []
  readonly notices = new Notices()
  readonly counters = new Counters()
  /** Called at each wait of the pacing. */
  between = (): void => {}
  readonly #scrubber: Scrubber
  readonly #files: Files
  #found: Found[] = []
  #passed: (damaged: number) => void = () => {}
  #next = (): void => this.#scrubber.start()

  constructor(files: Files, disk: Disk = machineDisk) {
    this.#files = files
    const { directory, needed, nodes } = files
    this.#scrubber = new Scrubber({
      disk,
      clock: { later: (callback, ms) => this.#later(callback, ms), monotonicMs: () => performance.now() },
      directory,
      shards: 1,
      bytesPerSecond: 1e9,
      attachments: { rooms: async () => ['den'], filesOf: async () => [...needed] },
      trees: () => [{ path: nodes, leaves }],
      repairTree: (path) => this.mended.push(relative(directory, path)),
      notices: this.notices,
      counters: this.counters,
      report: (_level, event, facts = {}) => {
        if (event === 'scrub.found') this.#found.push(facts as Found)
        if (event === 'scrub.ended') this.ended.push(String(facts.problem))
        if (event === 'scrub.pass') this.#passed(Number(facts.damaged))
        if (event === 'scrub.ended') this.#passed(Number.NaN)
      },
    })
  }

  /** What the next pass finds, by path in the data directory, and how many files are damaged after it. */
  async next(): Promise<{ damaged: number; found: Record<string, string>; kinds: string[] }> {
    this.#found = []
    const damaged = await new Promise<number>((resolve) => {
      this.#passed = resolve
      this.#next()
    })
    const found = this.#found.map(({ path, problem }) => [relative(this.#files.directory, path), problem])
    return { damaged, found: Object.fromEntries(found), kinds: this.#found.map(({ kind }) => kind) }
  }

  stop(): void {
    this.#scrubber.stop()
  }

  #later(callback: () => void, ms: number): () => void {
    if (ms >= hourMs) {
      this.#next = callback
      return () => {}
    }
    const timer = setImmediate(() => {
      this.between()
      callback()
    })
    return () => clearImmediate(timer)
  }
}

const inside = ({ directory }: Files, path: string): string => relative(directory, path)

/** The machine's disk, failing for the paths given. */
function refusing(refused: ReadonlyMap<string, string>): Disk {
  const check = (path: string): void => {
    const code = refused.get(path)
    if (code !== undefined) throw Object.assign(new Error(`${code}: refused, open '${path}'`), { code })
  }
  return {
    ...machineDisk,
    openForReading: async (path) => {
      check(path)
      return machineDisk.openForReading(path)
    },
    openFile: (path, mode) => {
      check(path)
      return machineDisk.openFile(path, mode)
    },
    listFiles: (path) => {
      check(path)
      return machineDisk.listFiles(path)
    },
  }
}

test('a file or directory that cannot be opened counts as found, with its reason, until it can be, and all others are read', async () => {
  const files = new Files()
  for (const [path, code, kind] of [
    [files.segment(1), 'EACCES', 'segment'],
    [files.shard, 'EACCES', 'segment'],
    [files.attachment('one'), 'EACCES', 'attachment'],
    [files.attachment('one'), 'EIO', 'attachment'],
    [files.room, 'EACCES', 'attachment'],
  ] as const) {
    const refused = new Map([[path, code]])
    const passes = new Passes(files, refusing(refused))
    const problem = `it cannot be read (${code})`
    expect([path, await passes.next(), passes.ended]).toEqual([
      path,
      { damaged: 1, found: { [inside(files, path)]: problem }, kinds: [kind] },
      [],
    ])
    expect(passes.notices.names).toEqual(['damage'])
    expect(passes.notices.health).not.toContain('den')
    expect(await passes.next()).toEqual({ damaged: 1, found: {}, kinds: [] })
    refused.clear()
    expect(await passes.next()).toEqual({ damaged: 0, found: {}, kinds: [] })
    expect(passes.notices.health).toBe('ok\n')
    passes.stop()
  }
})

test('an index that cannot be opened is rebuilt, and counts as damaged only if that fails', async () => {
  const files = new Files()
  const path = files.index(1)
  const right = readFileSync(path)
  const refused = new Map([[path, 'EACCES']])
  const passes = new Passes(files, refusing(refused))
  expect(await passes.next()).toEqual({
    damaged: 0,
    found: { [inside(files, path)]: 'it cannot be read (EACCES)' },
    kinds: ['index'],
  })
  expect(readFileSync(path).equals(right)).toBe(true)
  passes.stop()
  const noRoom: Disk = {
    ...refusing(refused),
    writeAtomic: (file) => {
      throw Object.assign(new Error(`EROFS: ${file}`), { code: 'EROFS' })
    },
  }
  const readOnly = new Passes(files, noRoom)
  expect((await readOnly.next()).damaged).toBe(1)
  expect(readOnly.notices.health).toContain(inside(files, path))
  readOnly.stop()
})

test('a segment that was replaced, extended, truncated or removed is found, and no other', async () => {
  const harms: readonly (readonly [harm: (files: Files, path: string) => void, problem: RegExp])[] = [
    [(files, path) => copyFileSync(files.segment(1), path), /^expected first seq \d+, found \d+$/],
    [(_, path) => appendFileSync(path, Buffer.alloc(500, 3)), /^expected the end of the file, found 500 more bytes$/],
    [
      (_, path) => truncateSync(path, readFileSync(path).length - 60),
      /found the end of the file|found an incomplete frame/,
    ],
    [(_, path) => rmSync(path), /^there is no such file$/],
    [(_, path) => flipByte(path, 30), /^expected a segment header, found no valid one$/],
    [(_, path) => flipByte(path, 500), /^expected frame \d+, found a frame with a bad \w+$/],
    [(_, path) => copyFileSync(new Files().segment(2), path), /^expected journal [0-9a-f]{32}, found [0-9a-f]{32}$/],
  ]
  for (const [harm, problem] of harms) {
    const files = new Files()
    const path = files.segment(2)
    harm(files, path)
    const passes = new Passes(files)
    const expected = {
      damaged: 1,
      found: { [inside(files, path)]: expect.stringMatching(problem) },
      kinds: ['segment'],
    }
    expect(await passes.next()).toEqual(expected)
    expect(passes.notices.health).toContain(inside(files, path))
    expect(await passes.next()).toEqual({ damaged: 1, found: {}, kinds: [] })
    passes.stop()
  }
})

test('a segment with intact frames that do not fit the next one is found', async () => {
  const files = new Files()
  const other = new Files()
  // The same journal, which continued differently: a copy of its first segments.
  for (const name of machineDisk.listFiles(other.shard)) rmSync(join(other.shard, name))
  for (const n of [0, 1]) copyFileSync(files.segment(n), join(other.shard, inside(files, files.segment(n)).slice(9)))
  const journal = other.open()
  grow(journal, 3, { type: 7 })
  journal.close()
  copyFileSync(other.segment(2), files.segment(2))
  const passes = new Passes(files)
  const chain = expect.stringMatching(/^expected previous chain hash [0-9a-f]{64}, found [0-9a-f]{64}$/)
  expect(await passes.next()).toMatchObject({ damaged: 1, found: { [inside(files, files.segment(3))]: chain } })
  passes.stop()
})

test('an index that is missing or belongs to another segment is rebuilt', async () => {
  const harms = [
    (_: Files, path: string) => rmSync(path),
    (files: Files, path: string) => copyFileSync(files.index(1), path),
    (_: Files, path: string) => truncateSync(path, 100),
  ]
  for (const harm of harms) {
    const files = new Files()
    const path = files.index(2)
    const right = readFileSync(path)
    harm(files, path)
    const passes = new Passes(files)
    expect(await passes.next()).toMatchObject({ damaged: 0, kinds: ['index'] })
    expect(readFileSync(path).equals(right)).toBe(true)
    expect(await passes.next()).toEqual({ damaged: 0, found: {}, kinds: [] })
    expect(passes.counters.get('scrub_found_index')).toBe(1)
    passes.stop()
  }
})

test.each(['EMFILE', 'ENFILE', 'ENOMEM'])(
  'a file that could not be checked for %s is checked again, and is not damaged',
  async (code) => {
    const files = new Files()
    const refused = new Map([
      [files.attachment('one'), code],
      [join(files.directory, 'shard-00'), code],
      [join(files.directory, 'blobs', 'den'), code],
    ])
    const passes = new Passes(files, refusing(refused))
    let waits = 0
    passes.between = () => {
      if (++waits === 200) refused.clear()
    }
    expect(await passes.next()).toEqual({ damaged: 0, found: {}, kinds: [] })
    expect(waits).toBeGreaterThan(200)
    expect(passes.ended).toEqual([])
    passes.stop()
  },
)

test('a tree file that is missing or short is repaired', async () => {
  for (const harm of [
    (path: string) => rmSync(path),
    (path: string) => truncateSync(path, 32 * 100),
    (path: string) => flipByte(path, 32 * 50),
  ]) {
    const files = new Files()
    harm(files.nodes)
    const passes = new Passes(files)
    expect(await passes.next()).toMatchObject({ damaged: 0, kinds: ['tree'] })
    expect(passes.mended).toEqual(['log/nodes.bin'])
    passes.stop()
  }
})

test('a missing attachment is damage while a record names it, and its room may be missing too', async () => {
  const files = new Files()
  rmSync(files.attachment('one'))
  const passes = new Passes(files)
  const isGone = 'there is no such file'
  expect(await passes.next()).toEqual({
    damaged: 1,
    found: { [inside(files, files.attachment('one'))]: isGone },
    kinds: ['attachment'],
  })
  rmSync(files.room, { recursive: true })
  expect(await passes.next()).toMatchObject({ damaged: 2, found: { [inside(files, files.attachment('two'))]: isGone } })
  files.needed.clear()
  expect(await passes.next()).toEqual({ damaged: 0, found: {}, kinds: [] })
  expect(passes.notices.health).toBe('ok\n')
  passes.stop()
})

test('an attachment deleted during its check is no damage, and deleting a damaged one ends the damage', async () => {
  const files = new Files()
  writeFileSync(files.attachment('one'), 'other')
  const passes = new Passes(files)
  expect(await passes.next()).toMatchObject({ damaged: 1, kinds: ['attachment'] })
  expect(passes.notices.health).toContain('damage: attachment;')
  let deleted = 0
  passes.between = () => {
    if (deleted++ > 0) return
    for (const bytes of ['one', 'two']) {
      files.needed.delete(fileName(bytes))
      rmSync(files.attachment(bytes))
    }
  }
  expect(await passes.next()).toEqual({ damaged: 0, found: {}, kinds: [] })
  expect(passes.notices.health).toBe('ok\n')
  passes.stop()
})

test('nothing is found in a journal that is appended to, sealed and compacted meanwhile', async () => {
  const files = new Files()
  const journal = files.open()
  const passes = new Passes(files)
  let n = 0
  passes.between = () => {
    journal.append([numberedFrame(journal.nextSeq)])
    const firstSeq = files.firstSeq(n++ % 4)
    const keep = ({ seq, payload }: Frame) => (payload.length >= 48 && seq % 3 === n % 3 ? Buffer.alloc(0) : undefined)
    for (const _ of compactSegment({ disk: machineDisk, directory: dirname(files.segment(0)), firstSeq, keep }));
  }
  const before = files.firstSeq(-1)
  for (let pass = 0; pass < 5; pass++) expect(await passes.next()).toEqual({ damaged: 0, found: {}, kinds: [] })
  expect(files.firstSeq(-1)).toBeGreaterThan(before)
  expect(existsSync(files.index(-2))).toBe(true)
  passes.stop()
  journal.close()
})
