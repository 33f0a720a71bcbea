/** What the users of a board know of it: what they sent, what was answered, and what follows from that. */
import { reviewsRoom } from '../../actors/tools/tools.ts'
import type { Payment, PaymentNetwork } from './payments.ts'
import type { Fields, Person } from './people.ts'

/** What is known of a command. `doubtful`: it was sent, and the board ended before it answered. */
type Standing = 'open' | 'doubtful' | 'accepted' | 'refused'

export type Reply = {
  readonly ok: boolean
  readonly data?: Readonly<Record<string, unknown>> & { readonly receipt?: Receipt }
  readonly error?: { readonly code: string; readonly message: string; readonly retry_after?: number }
}

type Receipt = {
  readonly event_id: string
  readonly accepted_at: number
  readonly duplicate?: boolean
  readonly log_index?: number
  readonly checkpoint?: string
}

export type Sent = {
  /** The name of its act. */
  readonly name: string
  readonly id: string
  readonly body: Buffer
  readonly fields: Fields
  readonly by: Person
  /** Virtual seconds. */
  readonly at: number
  /** How many were sent before it, and before its answer. */
  readonly number: number
  answeredAt?: number
  standing: Standing
  /** Whether the reason for its refusal still holds. */
  readonly holds?: () => boolean
  /** It was sent before, and may have been done then. */
  mayBeDone: boolean
  reply?: Reply
  /** Updates the model when it is accepted. */
  readonly onAccepted?: (data: Readonly<Record<string, unknown>>, model: Model) => void
}

export type Room = {
  readonly name: string
  readonly isPrivate: boolean
  /** Everyone who was ever given access, wanted or not: only these may see or do anything in it. */
  readonly everAllowed: Set<Person>
  readonly owner: Person | undefined
  /** Everyone to whom it may have been transferred. */
  readonly mayOwn: Set<Person>
}

export type Receiver = { readonly id: string; readonly by: Person }

export type Post = {
  readonly id: string
  readonly room: string
  readonly seq: number
  readonly by: Person
  readonly text: string
  readonly original: string
  /** Id of the first post of its thread. */
  readonly thread: string
}

export type Work = {
  readonly id: string
  readonly room: string
  readonly requester: Person
  worker: Person | undefined
  fence: number
  state: string
  result: string
}

export type Doc = { readonly id: string; readonly owner: Person; readonly room: string; version: number }

/** An attachment. */
export type File = { readonly id: string; readonly by: Person; readonly room: string; readonly sha256: string }

export type Hook = {
  readonly id: string
  readonly by: Person
  /** Of `room.post`; undefined: it is about something else. */
  readonly room: string | undefined
  /** Posts that were delivered to its address. */
  readonly delivered: Set<string>
  /** Its end may have been requested. */
  mayEnd: boolean
  /** How many commands were sent before its end was answered. */
  endedAt?: number
}

/** A listing of the tools directory, as it was last written. */
export type Tool = {
  readonly id: string
  /** What its reviews name; undefined: it was imported, which does not say. */
  readonly subject: string | undefined
  readonly host: string
  readonly isMcp: boolean
  /** Who last wrote it; undefined: it was imported. */
  owner: Person | undefined
  name: string
  description: string
  isWithdrawn: boolean
  /** Nobody can list it again: the operator withdrew it, and not its owner. */
  isBarred: boolean
  /** How often it was written. */
  version: number
}

export type Review = {
  readonly id: string
  readonly subject: string
  readonly by: Person
  readonly kind: string
  readonly text: string
  /** In the room of reviews. */
  readonly seq: number
}

/** What is known of a host of tools. */
type Host = {
  /** Everybody it has ever named as its owner. */
  readonly named: Set<Person>
  /** It has ever opted out of directories. */
  hasOptedOut: boolean
  /** How often it was asked who owns it, and on which days, UTC. */
  probes: number
  readonly days: Set<number>
}

/** A call of a tool whose command was accepted. */
export type Call = {
  readonly by: Person
  /** Virtual seconds. */
  readonly at: number
  /** Whether it counts against the allowance of its day; undefined: not known yet. */
  readonly counts: boolean | undefined
  /** Its outcome was unknown when it was answered: a payment may have been made. */
  readonly mayHavePaid: boolean
}

export type Delegate = {
  /** Of its key. */
  readonly name: string
  readonly person: Person
  readonly id: string
  /** Virtual seconds. */
  readonly until: number
  /** It was revoked for certain. */
  isOver: boolean
}

type RoleChange = { readonly room: string; readonly person: string; readonly role: string }

/** Role of its target, else of its signer, once this operation is accepted. */
const rolesAfter: Readonly<Record<string, string>> = {
  'room.create': 'owner',
  'room.join': 'member',
  'room.leave': 'none',
  'room.invite.accept': 'member',
  'room.member.add': 'member',
  'room.member.remove': 'none',
  'room.moderator.add': 'moderator',
  'room.moderator.remove': 'member',
  'room.owner.transfer': 'owner',
  'room.ban': 'none',
}

/** In every text that only members may read, and in every name of a private room. */
export const secretMark = 'zqsecretqz'

export class Model {
  readonly people: readonly Person[]
  /** Virtual seconds. */
  now = 0
  readonly sent = new Map<string, Sent>()
  readonly rooms = new Map<string, Room>()
  readonly posts = new Map<string, Post>()
  readonly works = new Map<string, Work>()
  readonly docs = new Map<string, Doc>()
  /** Files whose deletion nobody requested. */
  readonly files = new Map<string, File>()
  readonly receivers: Receiver[] = []
  readonly conversations: { readonly room: string; readonly members: readonly Person[] }[] = []
  /** Erased for certain, which is permanent. */
  readonly erased = new Set<Person>()
  /** Ids of unresolved reports. */
  readonly reports: string[] = []
  readonly invites: { readonly code: string; readonly room: string }[] = []
  /** First versions of posts whose text may be gone: somebody requested it. */
  readonly removalRequested = new Set<string>()
  /** First versions of posts that expire: they are in no export. */
  readonly expiring = new Set<string>()
  /** First versions of posts whose text is gone for certain. */
  readonly redacted = new Set<string>()
  /** All of their posts may be hidden. */
  readonly hidden = new Set<Person>()
  /** Suspended for certain: it was answered, and nothing that ends it was sent since. */
  readonly suspended = new Set<Person>()
  /** Possibly suspended at some time. */
  readonly everSuspended = new Set<Person>()
  /** Webhooks, by the id of the command that created them. */
  readonly hooks = new Map<string, Hook>()
  readonly tools = new Map<string, Tool>()
  readonly reviews: Review[] = []
  readonly calls: Call[] = []
  /** Calls that have reached their tools, by their words. */
  readonly visits = new Set<string>()
  /** Ids of tools that the wallet pays for, as last answered. */
  readonly relayed = new Set<string>()
  /** Calls that were answered with a demand for payment. */
  readonly demanded = new Set<string>()
  /** What calls were paid with, by their words, and by whom they were sent. */
  readonly payments = new Map<string, { readonly by: Person; readonly payment: Payment }>()
  /** Where payments are collected. */
  readonly network: PaymentNetwork
  readonly #hosts = new Map<string, Host>()
  /** Threads that are locked for certain. */
  readonly locked = new Set<string>()
  /** How often the end of one of these was requested. */
  ended = 0
  readonly #mutes = new Set<string>()
  /** Keys that were rotated away for certain, with their owners. */
  readonly retired: { readonly person: Person; readonly key: number }[] = []
  /** Credits that the operator created. */
  minted = 0
  readonly delegates: Delegate[] = []
  /** Public posts that a delegate signed, with the id of the delegation. */
  readonly delegated = new Map<string, string>()

  constructor(people: readonly Person[], network: PaymentNetwork) {
    this.people = people
    this.network = network
    for (const name of ['lobby', reviewsRoom])
      this.rooms.set(name, { name, isPrivate: false, everAllowed: new Set(), owner: undefined, mayOwn: new Set() })
  }

  get operator(): Person {
    return this.people[0]!
  }

  /** The outcome of everything that was sent is known. */
  get isCertain(): boolean {
    for (const { standing } of this.sent.values()) if (standing === 'open' || standing === 'doubtful') return false
    return true
  }

  /** Something that held for certain is to end. Commands in flight no longer tell whether it holds. */
  end<Item>(held: Set<Item>, item: Item): void {
    held.delete(item)
    this.ended++
  }

  /** It is unknown, or somebody requested the removal of its text. */
  mayBeRemoved(id: string): boolean {
    const post = this.posts.get(id)
    return (
      post === undefined ||
      this.removalRequested.has(post.original) ||
      this.expiring.has(post.original) ||
      this.hidden.has(post.by)
    )
  }

  mute(by: Person, target: Person): void {
    this.#mutes.add(`${by.name} ${target.name}`)
  }

  /** A list that this reader signs for may leave out posts of this author. */
  mayMute(reader: Person | undefined, { name }: Person): boolean {
    return reader !== undefined && this.#mutes.has(`${reader.name} ${name}`)
  }

  hostOf(name: string): Host {
    const known = this.#hosts.get(name) ?? { named: new Set(), hasOptedOut: false, probes: 0, days: new Set() }
    this.#hosts.set(name, known)
    return known
  }

  /** By room: the roles that a person may have. Any of the commands that were in flight together may have been the last. */
  rolesOf({ id }: Person): Map<string, ReadonlySet<string>> {
    const all = [...this.sent.values()]
      .filter(({ standing }) => standing === 'accepted')
      .flatMap((sent) => this.#roleChanges(sent).map((change) => ({ ...change, sent })))
    const own = Map.groupBy(
      all.filter(({ person }) => person === id),
      ({ room }) => room,
    )
    const isLast = ({ answeredAt = 0 }: Sent, changes: typeof all) =>
      !changes.some((other) => other.sent.number >= answeredAt)
    return new Map(
      [...own].map(([room, changes]) => {
        const last = changes.filter(({ sent }) => isLast(sent, changes))
        return [room, new Set(last.map(({ role }) => role))]
      }),
    )
  }

  #roleChanges({ fields, by }: Sent): RoleChange[] {
    const { operation, target, members = [] } = fields
    const role = rolesAfter[operation]
    if (role === undefined) return []
    const invite = this.invites.find(({ code }) => String(fields.data).includes(code))
    const room = String(fields.room ?? invite?.room)
    const others = operation === 'room.owner.transfer' ? [by.id] : (members as readonly string[])
    return [
      { room, person: String(target ?? by.id), role },
      ...others.map((person) => ({ room, person, role: 'member' })),
    ]
  }

  isPrivate(room: string): boolean {
    return this.rooms.get(room)?.isPrivate === true
  }
}
