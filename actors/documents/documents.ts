/**
 * Documents and their versions: who owns them, who may see them, and where the texts are stored. Texts stay in the journal: the
 * state has only the record number of each version.
 *
 * A document of a room is decided by that room, any other by its owner's actor `@docs-<identity id>`, so that `request_id`
 * works for the documents of one owner as it does inside a room. A public document gets change numbers and is in lists. An
 * unlisted one can be read by anyone who has its id and is never in a list. A document of a private room belongs to that room.
 */

import { type Active, ByActivity, nowhere } from '../records/board.ts'
import type { Core, Projection, RecordPlace } from '../records/core.ts'
import { ActsOf, commandIn, type FactRecord } from '../records/record.ts'

export type DocVisibility = 'public' | 'unlisted' | 'private'

/** `version` is the position of its newest change, as for everything listed by activity. */
export interface Doc extends Active<Doc> {
  readonly id: string
  /** The actor that decides: the name of its room, or its owner's actor. */
  readonly actor: string
  /** Identity id of its creator. */
  readonly owner: string
  readonly visibility: DocVisibility
  title: string
  /** Journal of the deciding shard, and the numbers of its versions there, oldest first. */
  readonly shard: number
  readonly places: number[]
  /** Positions of its versions in the order of changes, oldest first; of those in a snapshot of an older release, only the newest. */
  readonly changes: number[]
  readonly createdAt: number
  updatedAt: number
  isDeleted: boolean
}

/** Facts of `docs.create` and `docs.write`. The signed text is in the command; `merged` is present if another text is served. */
export type VersionFacts = {
  readonly doc: string
  readonly version: number
  readonly title: string
  readonly visibility: DocVisibility
  /** Of the served text. */
  readonly size: number
  readonly sha256: string
  readonly merged?: Merged
}

export type Merged = {
  readonly text: string
  /** SHA-256 of the signed text, hex. */
  readonly signed_sha256: string
  readonly base_version: number
  readonly onto_version: number
}

/** `moderated`: it was not deleted by its creator. */
export type DocDeletedFacts = { readonly target: string; readonly reason: string; readonly moderated?: true }

/** A version, read from its record. */
export type Version = {
  readonly facts: VersionFacts
  readonly record: FactRecord
  /** The text that is served. */
  readonly text: string
}

type Packed = readonly (readonly [
  id: string,
  actor: string,
  owner: string,
  visibility: DocVisibility,
  title: string,
  shard: number,
  places: readonly number[],
  createdAt: number,
  updatedAt: number,
  isDeleted: boolean,
  version: number,
  /** Absent in snapshots of older releases. */
  changes?: readonly number[],
])[]

/** The actor for an identity's documents outside of rooms. */
export function ownActor(identity: string): string {
  return `@docs-${identity}`
}

export class Documents implements Projection {
  readonly acts: Projection['acts'] = {
    'docs.create': (act, place) => this.#create(act, place),
    'docs.write': (act, place) => this.#write(act, place),
    'docs.delete': ({ facts }: FactRecord<DocDeletedFacts>) => {
      this.#byId.get(facts.target)!.isDeleted = true
      this.#deleted++
    },
  }
  readonly #core: Core
  readonly #byId = new Map<string, Doc>()
  readonly #byActor = new Map<string, Doc[]>()
  readonly #byOwner = new Map<string, Doc[]>()
  #deleted = 0
  /** Every public document, including deleted ones. */
  readonly listed = new ByActivity<Doc>()

  constructor(core: Core) {
    this.#core = core
  }

  /** Number of documents that are not deleted. */
  get count(): number {
    return this.#byId.size - this.#deleted
  }

  find(id: string): Doc | undefined {
    return this.#byId.get(id)
  }

  /** Documents of a room, or of an owner's actor. */
  ofActor(actor: string): readonly Doc[] {
    return this.#byActor.get(actor) ?? []
  }

  ofOwner(identity: string): readonly Doc[] {
    return this.#byOwner.get(identity) ?? []
  }

  actorOf(id: string): string | undefined {
    return this.#byId.get(id)?.actor
  }

  pack(): Packed {
    return [...this.#byId.values()].map(
      (doc) =>
        [
          doc.id,
          doc.actor,
          doc.owner,
          doc.visibility,
          doc.title,
          doc.shard,
          doc.places,
          doc.createdAt,
          doc.updatedAt,
          doc.isDeleted,
          doc.version,
          doc.changes,
        ] as const,
    )
  }

  restore(packed: Packed): void {
    for (const each of [...packed].sort((a, b) => a[10] - b[10])) {
      const [id, actor, owner, visibility, title, shard, places, createdAt, updatedAt, isDeleted, version, changes] =
        each
      this.#add(
        {
          id,
          actor,
          owner,
          visibility,
          title,
          shard,
          places: [...places],
          changes: [...(changes ?? [version])],
          createdAt,
          updatedAt,
          isDeleted,
          ...unlinked,
        },
        version,
      )
      if (isDeleted) this.#deleted++
    }
  }

  #create(act: FactRecord<VersionFacts>, place: RecordPlace): void {
    const { doc: id, title, visibility } = act.facts
    const doc: Doc = {
      id,
      actor: act.room,
      owner: Buffer.from(act.author).toString('hex'),
      visibility,
      title,
      shard: place.shard,
      places: [place.seq],
      changes: [place.change],
      createdAt: act.at,
      updatedAt: act.at,
      isDeleted: false,
      ...unlinked,
    }
    this.#add(doc, place.change)
    this.#tell(doc, place)
  }

  #write(act: FactRecord<VersionFacts>, place: RecordPlace): void {
    const { doc: id, title } = act.facts
    const doc = this.#byId.get(id)!
    doc.places.push(place.seq)
    doc.changes.push(place.change)
    doc.title = title
    doc.updatedAt = act.at
    this.#touch(doc, place.change)
    this.#tell(doc, place)
  }

  #add(doc: Doc, version: number): void {
    this.#byId.set(doc.id, doc)
    for (const [table, key] of [
      [this.#byActor, doc.actor],
      [this.#byOwner, doc.owner],
    ] as const) {
      const others = table.get(key)
      if (others === undefined) table.set(key, [doc])
      else others.push(doc)
    }
    this.#touch(doc, version)
  }

  #touch(doc: Doc, version: number): void {
    if (doc.visibility === 'public') this.listed.touch(doc, version)
    else doc.version = version
  }

  /** Followers of a room are notified of its documents, except unlisted ones. */
  #tell(doc: Doc, { change }: RecordPlace): void {
    if (doc.visibility === 'unlisted') return
    const { board, changes } = this.#core
    const room = board.rooms.get(doc.actor)?.number ?? nowhere
    changes.add('document.written', { position: change, room, slot: nowhere, subject: doc.id, at: doc.updatedAt })
  }
}

/** Number of the version that this change wrote; 0 if that is not known any more. */
export function versionOfChange({ places, changes }: Pick<Doc, 'places' | 'changes'>, position: number): number {
  const found = changes.lastIndexOf(position)
  return found === -1 ? 0 : places.length - changes.length + found + 1
}

const unlinked = { version: 0, newer: undefined, older: undefined }

const written = new ActsOf<VersionFacts>('docs.create', 'docs.write')

/** A version from its record. */
export function versionOf(record: FactRecord): Version {
  const { facts } = written.in(record)
  return { facts, record, text: facts.merged?.text ?? signedText(record.by!.signed) }
}

/** The text inside the signed bytes. */
export function signedText(signed: Uint8Array): string {
  return commandIn(signed).text!
}
