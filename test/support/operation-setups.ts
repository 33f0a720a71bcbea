/**
 * What must exist before the documented example of an operation can work: for every operation, who sends it and which real ids replace the
 * invented ones.
 */
import { createHash, randomBytes } from 'node:crypto'
import type { Operation } from '../../actors/kernel/operation.ts'
import { operationByName } from '../../actors/operations.ts'
import type { Signer } from '../../src/cli/sign.ts'
import { signingBytes } from '../../src/format/signing.ts'
import { type Answer, type Client, type Fields, now, person, type SigningOptions } from './client.ts'
import { createDelegation } from './delegations.ts'
import { HookTarget } from './hook-target.ts'
import { toolSetups } from './tool-setups.ts'
import { workSetups } from './work-setups.ts'

type Values = Readonly<Record<string, string | number | readonly string[]>>

export type PreparedCommand = {
  readonly signer: Signer
  /** Replaces fields of the example. */
  readonly fields?: Values
  readonly signing?: SigningOptions
  /** Runs while the answer is pending. */
  readonly meanwhile?: () => Promise<unknown>
}

/** A board with an operator, and people who have done nothing yet. */
export class World {
  readonly client: Client
  readonly operator: Signer
  #people = 0
  #target: Promise<HookTarget> | undefined

  /** `people`: how many there are already. */
  constructor(client: Client, operator: Signer, people = 0) {
    this.client = client
    this.operator = operator
    this.#people = people
  }

  get people(): number {
    return this.#people
  }

  /** A new person. */
  someone(): Signer {
    return person(`somebody ${++this.#people}`)
  }

  /** A name that no room or handle has. */
  uniqueName(): string {
    return `n-${createHash('sha256').update(randomBytes(16)).digest('hex').slice(0, 16)}`
  }

  /** Sends a command that must be accepted; returns its data. */
  async run(signer: Signer, fields: Fields): Promise<Record<string, Record<string, unknown>>> {
    const answer = await this.client.command(signer, fields)
    if (answer.status !== 200) throw new Error(`${JSON.stringify(fields)}: ${answer.text}`)
    return answer.data as unknown as Record<string, Record<string, unknown>>
  }

  /** A room with its owner. */
  async room(more: Values = {}, owner = this.someone()): Promise<{ owner: Signer; room: string }> {
    const room = this.uniqueName()
    await this.run(owner, { operation: 'room.create', room, ...more })
    return { owner, room }
  }

  privateRoom(members: readonly string[] = [], owner = this.someone()): Promise<{ owner: Signer; room: string }> {
    return this.room({ visibility: 'private', members }, owner)
  }

  /** Id of a new event. */
  async post(signer = this.someone(), fields: Values = {}): Promise<string> {
    const answer = await this.client.post(signer, { text: 'something', ...fields })
    if (answer.status !== 200) throw new Error(answer.text)
    return answer.data.receipt!.event_id
  }

  /** A person with an event in somebody else's room. */
  async roomWithPost(): Promise<{ owner: Signer; room: string; author: Signer; event: string }> {
    const { owner, room } = await this.room()
    const author = this.someone()
    return { owner, room, author, event: await this.post(author, { room }) }
  }

  async blob(signer: Signer, more: Values = {}): Promise<string> {
    const fields = { operation: 'blob.put', filename: 'a.txt', media_type: 'text/plain', data: 'SGVsbG8K', ...more }
    return (await this.run(signer, fields)).blob!.id as string
  }

  async doc(signer: Signer, more: Values = {}): Promise<string> {
    const fields = { operation: 'docs.create', text: '# Plan\n', data: '{"schema":1,"title":"Plan"}', ...more }
    return (await this.run(signer, fields)).doc!.id as string
  }

  async receiver(signer: Signer): Promise<string> {
    return (await this.run(signer, { operation: 'receiver.create', data: '{"schema":1}' })).receiver!.id as string
  }

  /** `data` of webhook.create, for an address that answers its challenge. */
  async hookData(more: object = {}): Promise<string> {
    this.#target ??= HookTarget.open()
    const url = (await this.#target).url(`/${this.uniqueName()}`)
    return JSON.stringify({ schema: 1, url, kinds: ['room.post'], room: 'lobby', ...more })
  }

  async webhook(signer: Signer): Promise<string> {
    const fields = { operation: 'webhook.create', data: await this.hookData() }
    return (await this.run(signer, fields)).webhook!.id as string
  }

  /** A person with this many credits. */
  async personWithCredits(credits = 1_000): Promise<Signer> {
    const signer = this.someone()
    await this.run(this.operator, { operation: 'credit.grant', target: signer.id, amount: credits })
    return signer
  }

  async report(): Promise<string> {
    const event = await this.post()
    const { report } = await this.run(this.someone(), { operation: 'report', event_id: event, reason: 'spam' })
    return report!.id as string
  }

  /** Code of a new invite. */
  async invite(owner: Signer, room: string, more: Values = {}): Promise<string> {
    return (await this.run(owner, { operation: 'room.invite.create', room, ...more })).invite!.code as string
  }

  /** A conversation that waits for the answer of `other`. */
  async conversation(
    opener = this.someone(),
    other = this.someone(),
  ): Promise<{ room: string; opener: Signer; other: Signer }> {
    const opened = await this.run(opener, { operation: 'conversation.open', members: [other.id], text: 'hello' })
    const { room } = opened.conversation as { room: string }
    return { room, opener, other }
  }

  /** Rotates an identity to the key of another. */
  rotation(signer: Signer, next: Signer): { fields: Values; signing: SigningOptions } {
    const signing = { timestamp: now(), nonce: this.uniqueName() }
    const command = { operation: 'identity.rotate', target: next.publicKey, public_key: signer.publicKey, ...signing }
    const proof = next.sign(signingBytes(this.client.serviceId, command)).toString('base64url')
    return { fields: { target: next.publicKey, proof }, signing }
  }

  /** What makes a new key a person's delegate. */
  delegation(signer: Signer): PreparedCommand {
    const key = this.someone()
    const example = operationByName.get('delegation.create')!.example as unknown as { ttl: number; data: string }
    const signing = { timestamp: now(), nonce: this.uniqueName() }
    const { ttl, data } = example
    const command = { operation: 'delegation.create', target: key.publicKey, ttl, data, public_key: signer.publicKey }
    const proof = key.sign(signingBytes(this.client.serviceId, { ...command, ...signing })).toString('base64url')
    return { signer, fields: { target: key.publicKey, proof }, signing }
  }

  /** A person's new delegate. */
  async delegate(owner: Signer): Promise<{ key: Signer; id: string }> {
    const key = this.someone()
    return { key, id: await createDelegation(this.client, owner, key) }
  }

  /** Sends the example of an operation with these fields replaced. */
  async send(operation: Operation, { signer, fields = {}, signing = {}, meanwhile }: PreparedCommand): Promise<Answer> {
    const { proof, ...command } = { ...operation.example, ...fields } as Record<string, string>
    const { body } = this.client.sign(signer, command as Fields, signing)
    const sent = this.client.send(
      proof === undefined ? body : JSON.stringify({ ...(JSON.parse(body) as object), proof }),
    )
    if (meanwhile === undefined) return sent
    let isAnswered = false
    void sent.finally(() => {
      isAnswered = true
    })
    while (!isAnswered) await Promise.race([sent, meanwhile()])
    return sent
  }
}

type Setup = (world: World) => Promise<PreparedCommand> | PreparedCommand

const anyone: Setup = (world) => ({ signer: world.someone() })
/** An event of another. */
const someEvent: Setup = async (world) => ({ signer: world.someone(), fields: { event_id: await world.post() } })
/** The owner of a room. */
const ownRoom: Setup = async (world) => {
  const { owner, room } = await world.room()
  return { signer: owner, fields: { room } }
}

/** The owner of a room and a person with this role in it. */
function withRole(role: 'none' | 'member' | 'moderator'): Setup {
  return async (world) => {
    const { owner, room } = await world.room()
    const target = world.someone().id
    if (role !== 'none') await world.run(owner, { operation: `room.${role}.add`, room, target })
    return { signer: owner, fields: { room, target } }
  }
}

async function eventInOwnRoom(world: World): Promise<PreparedCommand> {
  const { owner, event } = await world.roomWithPost()
  return { signer: owner, fields: { event_id: event } }
}

const ownBlob: Setup = async (world) => {
  const signer = world.someone()
  return { signer, fields: { target: await world.blob(signer) } }
}
const ownDoc: Setup = async (world) => {
  const signer = world.someone()
  return { signer, fields: { target: await world.doc(signer) } }
}
const ownReceiver: Setup = async (world) => {
  const signer = world.someone()
  return { signer, fields: { target: await world.receiver(signer) } }
}
const ownWebhook: Setup = async (world) => {
  const signer = world.someone()
  return { signer, fields: { target: await world.webhook(signer) } }
}
const signerWithWebhook: Setup = async (world) => {
  const signer = world.someone()
  await world.webhook(signer)
  return { signer }
}
const registeredHandle: Setup = async (world) => {
  const handle = world.uniqueName()
  await world.run(world.someone(), { operation: 'identity.register', handle })
  return { signer: world.someone(), fields: { target: handle } }
}

/** By the name of the operation. */
export const setups: Readonly<Record<string, Setup>> = {
  'identity.register': (world) => ({ signer: world.someone(), fields: { handle: world.uniqueName() } }),
  'identity.get': registeredHandle,
  'identities.list': anyone,
  'identity.events': registeredHandle,
  'identity.profile.set': anyone,
  'identity.rotate': async (world) => {
    const signer = world.someone()
    await world.post(signer)
    return { signer, ...world.rotation(signer, world.someone()) }
  },
  'delegation.create': (world) => ({ ...world.delegation(world.someone()) }),
  'delegation.revoke': async (world) => {
    const signer = world.someone()
    return { signer, fields: { target: (await world.delegate(signer)).id } }
  },
  'delegation.list': anyone,
  'identity.suspend': (world) => ({ signer: world.operator, fields: { target: world.someone().id } }),
  'identity.unsuspend': async (world) => {
    const target = world.someone().id
    await world.run(world.operator, { operation: 'identity.suspend', target, reason: 'x' })
    return { signer: world.operator, fields: { target } }
  },
  'identity.erase': (world) => ({ signer: world.operator, fields: { target: world.someone().id } }),
  'room.create': (world) => ({ signer: world.someone(), fields: { room: world.uniqueName() } }),
  'room.get': anyone,
  'rooms.list': anyone,
  'room.pages': anyone,
  'room.join': async (world) => ({ signer: world.someone(), fields: { room: (await world.room()).room } }),
  'room.leave': async (world) => {
    const signer = world.someone()
    const { room } = await world.room({ members: [signer.id] })
    return { signer, fields: { room } }
  },
  'room.members': anyone,
  'room.member.add': withRole('none'),
  'room.member.remove': withRole('member'),
  'room.moderator.add': withRole('none'),
  'room.moderator.remove': withRole('moderator'),
  'room.owner.transfer': withRole('member'),
  'room.ban': withRole('member'),
  'room.unban': async (world) => {
    const { owner, room } = await world.room()
    const target = world.someone().id
    await world.run(owner, { operation: 'room.ban', room, target, reason: 'x' })
    return { signer: owner, fields: { room, target } }
  },
  'room.bans': anyone,
  'room.invite.create': ownRoom,
  'room.invite.accept': async (world) => {
    const { owner, room } = await world.privateRoom()
    const code = await world.invite(owner, room)
    return { signer: world.someone(), fields: { data: JSON.stringify({ schema: 1, code }) } }
  },
  'room.policy.get': anyone,
  'room.policy.set': ownRoom,
  'room.hide': eventInOwnRoom,
  'thread.pin': eventInOwnRoom,
  'thread.lock': eventInOwnRoom,
  'thread.move': async (world) => {
    const { owner, event } = await world.roomWithPost()
    const to = world.uniqueName()
    await world.run(owner, { operation: 'room.create', room: to })
    return { signer: owner, fields: { event_id: event, data: JSON.stringify({ schema: 1, to }) } }
  },
  'room.restore': async (world) => {
    const { owner, event } = await world.roomWithPost()
    await world.run(owner, { operation: 'room.hide', event_id: event, reason: 'x' })
    return { signer: owner, fields: { event_id: event } }
  },
  'room.modlog': anyone,
  'moderation.log': anyone,
  report: someEvent,
  'reports.list': (world) => ({ signer: world.operator }),
  'reports.summary': (world) => ({ signer: world.operator }),
  'report.resolve': async (world) => ({ signer: world.operator, fields: { target: await world.report() } }),
  post: anyone,
  'event.get': someEvent,
  'event.history': someEvent,
  'events.list': anyone,
  'thread.get': someEvent,
  'room.follow': anyone,
  'room.unfollow': anyone,
  'thread.follow': someEvent,
  'thread.unfollow': someEvent,
  'follows.list': anyone,
  // A position that is not new is accepted without a write.
  'inbox.seen': async (world) => ({ signer: world.someone(), fields: { data: '{"schema":1,"inbox":1}' } }),
  'identity.mute': anyone,
  'identity.unmute': anyone,
  'mutes.list': anyone,
  'threads.list': anyone,
  'event.redact': async (world) => {
    const signer = world.someone()
    return { signer, fields: { event_id: await world.post(signer) } }
  },
  vote: someEvent,
  'blob.put': anyone,
  'blob.get': ownBlob,
  'blob.delete': ownBlob,
  'blob.takedown': (world) => ({
    signer: world.operator,
    fields: { target: createHash('sha256').update(world.uniqueName()).digest('hex') },
  }),
  'docs.create': anyone,
  'docs.read': ownDoc,
  'docs.write': ownDoc,
  'docs.list': anyone,
  'docs.history': ownDoc,
  'docs.delete': ownDoc,
  'conversation.open': (world) => ({ signer: world.someone(), fields: { members: [world.someone().id] } }),
  'conversation.respond': async (world) => {
    const { room, other } = await world.conversation()
    return { signer: other, fields: { room } }
  },
  'conversations.list': anyone,
  ...workSetups,
  'credit.balance': anyone,
  'credit.history': anyone,
  'credit.transfer': async (world) => ({ signer: await world.personWithCredits() }),
  'credit.grant': (world) => ({ signer: world.operator }),
  'inbox.get': anyone,
  'quota.get': anyone,
  'limits.grant': (world) => ({ signer: world.operator }),
  'limits.revoke': async (world) => {
    const target = world.someone().id
    const grant = { operation: 'limits.grant', target, ttl: 60, data: '{"schema":1,"factor":2}' }
    await world.run(world.operator, grant)
    return { signer: world.operator, fields: { target } }
  },
  'limits.list': (world) => ({ signer: world.operator }),
  'updates.get': (world) => ({ signer: world.someone(), meanwhile: () => world.post() }),
  'changes.list': anyone,
  'room.read_token': async (world) => {
    const { owner, room } = await world.privateRoom()
    return { signer: owner, fields: { room } }
  },
  'receiver.create': anyone,
  'receiver.list': anyone,
  'receiver.items': ownReceiver,
  'receiver.rotate': ownReceiver,
  'receiver.delete': ownReceiver,
  ...toolSetups,
  'webhook.create': async (world) => ({ signer: world.someone(), fields: { data: await world.hookData() } }),
  'webhook.list': signerWithWebhook,
  'webhook.rotate': ownWebhook,
  'webhook.delete': ownWebhook,
  'webhook.deliveries': ownWebhook,
  'webhook.redeliver': ownWebhook,
  'log.checkpoint': anyone,
  'log.proof': someEvent,
  'log.consistency': anyone,
  'log.leaves': anyone,
  'log.history': anyone,
  'log.witnesses': anyone,
}
