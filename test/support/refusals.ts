/** Refusals that many operations have in common: unknown ids, rooms of others, rotated keys. */

import { createHash } from 'node:crypto'
import { operationByName } from '../../actors/operations.ts'
import { beginEpoch } from '../../src/board-directory.ts'
import type { Signer } from '../../src/cli/sign.ts'
import { machineDisk } from '../../storage/machine-disk.ts'
import { boardDirectory, startBoard } from './board-process.ts'
import { type Answer, Client } from './client.ts'
import { type PreparedCommand, setups, type World } from './operation-setups.ts'

export type RefusalCase = (world: World) => Promise<Answer>
type Values = PreparedCommand['fields']

/** The example of an operation, with other fields. */
export const send = (world: World, name: string, signer: Signer, fields: Values = {}) =>
  world.send(operationByName.get(name)!, { signer, fields })

/** The unchanged example: what it names does not exist. */
export const sendExample =
  (name: string): RefusalCase =>
  (world) =>
    send(world, name, world.someone())
export const inUnknownRoom =
  (name: string): RefusalCase =>
  (world) =>
    send(world, name, world.someone(), { room: 'no-such-room' })

/** In a private room, by a non-member. */
export const inPrivateRoom =
  (name: string): RefusalCase =>
  async (world) => {
    const { room } = await world.privateRoom()
    return send(world, name, world.someone(), { room })
  }

export const onEventInPrivateRoom =
  (name: string): RefusalCase =>
  async (world) => {
    const { owner, room } = await world.privateRoom()
    return send(world, name, world.someone(), { event_id: await world.post(owner, { room }) })
  }

/** What the setup prepares for one is tried by another. */
export const byAnotherPerson =
  (name: string): RefusalCase =>
  async (world) =>
    world.send(operationByName.get(name)!, { ...(await setups[name]!(world)), signer: world.someone() })

/** The same twice, by a new command. */
export const twice =
  (name: string): RefusalCase =>
  async (world) => {
    const ready = await setups[name]!(world)
    const first = await world.send(operationByName.get(name)!, ready)
    if (first.status !== 200) throw new Error(first.text)
    return world.send(operationByName.get(name)!, ready)
  }

export const unsigned =
  (name: string): RefusalCase =>
  (world) =>
    world.client.send(JSON.stringify(operationByName.get(name)!.example))

/** By a key that its identity has rotated away. */
export const byRotatedKey =
  (name: string): RefusalCase =>
  async (world) => {
    const signer = world.someone()
    const { fields, signing } = world.rotation(signer, world.someone())
    await world.post(signer)
    const moved = await world.send(operationByName.get('identity.rotate')!, { signer, fields, signing })
    if (moved.status !== 200) throw new Error(moved.text)
    return send(world, name, signer)
  }

/** By a delegate, of an operation reserved for the identity's own key. */
export const byDelegate =
  (name: string): RefusalCase =>
  async (world) => {
    const { key } = await world.delegate(world.someone())
    return send(world, name, key)
  }

export const bySuspendedPerson =
  (name: string): RefusalCase =>
  async (world) => {
    const signer = world.someone()
    await world.run(world.operator, { operation: 'identity.suspend', target: signer.id, reason: 'x' })
    return send(world, name, signer)
  }

export const signerRefusals = (name: string) => ({
  key_rotated: byRotatedKey(name),
  suspended: bySuspendedPerson(name),
})
export const roomRefusals = (name: string) => ({ not_found: sendExample(name), private_room: inPrivateRoom(name) })
export const roomReadRefusals = (name: string) => ({
  not_found: inUnknownRoom(name),
  private_room: inPrivateRoom(name),
})
export const eventReadRefusals = (name: string) => ({
  not_found: sendExample(name),
  private_room: onEventInPrivateRoom(name),
})

export const unknownIds = (count: number) =>
  Array.from({ length: count }, (_, n) => createHash('sha256').update(`nobody ${n}`).digest('hex'))

/** A private room that is full. */
export const fullRoom = (world: World) => world.privateRoom(unknownIds(100))

/** A public room with a policy, and a person who is not a member of it. */
export const roomWithPolicy = async (world: World, policy: object) => {
  const { owner, room } = await world.room()
  await world.run(owner, { operation: 'room.policy.set', room, data: JSON.stringify(policy) })
  return { owner, room, stranger: world.someone() }
}

export const inRoomWithPolicy =
  (name: string, policy: object): RefusalCase =>
  async (world) => {
    const { room, stranger } = await roomWithPolicy(world, policy)
    return send(world, name, stranger, { room })
  }

/** In a public room, by a person who is banned from it. `fields`: of the command, prepared by its owner before. */
export const byBannedPerson =
  (name: string, fields: (world: World, owner: Signer, room: string) => Promise<Values>): RefusalCase =>
  async (world) => {
    const { owner, room } = await world.room()
    const signer = world.someone()
    const prepared = await fields(world, owner, room)
    await world.run(owner, { operation: 'room.ban', room, target: signer.id, reason: 'x' })
    return send(world, name, signer, prepared)
  }

export const targetIsOwner =
  (name: string): RefusalCase =>
  async (world) => {
    const { owner, room } = await world.room()
    return send(world, name, owner, { room, target: owner.id })
  }

export const intoFullRoom =
  (name: string): RefusalCase =>
  async (world) => {
    const { owner, room } = await fullRoom(world)
    return send(world, name, owner, { room, target: world.someone().id })
  }

export const docInRoom = async (world: World) => {
  const { owner, room } = await world.room()
  return { owner, room, doc: await world.doc(owner, { room }) }
}

/** A document in a room whose policy changed after it was created. */
export const writeDocUnderPolicy =
  (policy: object): RefusalCase =>
  async (world) => {
    const { owner, room, doc } = await docInRoom(world)
    await world.run(owner, { operation: 'room.policy.set', room, data: JSON.stringify(policy) })
    return send(world, 'docs.write', world.someone(), { target: doc })
  }

export const privateDoc =
  (name: string): RefusalCase =>
  async (world) => {
    const { owner, room } = await world.privateRoom()
    return send(world, name, world.someone(), { target: await world.doc(owner, { room }) })
  }

export const privateBlob: RefusalCase = async (world) => {
  const { owner, room } = await world.privateRoom()
  return send(world, 'blob.get', world.someone(), { target: await world.blob(owner, { room }) })
}

/** A cursor of a board before it was restored from a backup. */
export const cursorFromBeforeRestore: RefusalCase = async () => {
  const directory = boardDirectory()
  const before = await startBoard({ directory })
  const client = await Client.of(before)
  const { data } = await client.get('/api/updates')
  client.close()
  await before.stop()
  beginEpoch(machineDisk, directory, { generation: 'another' })
  const after = await startBoard({ directory })
  const again = await Client.of(after)
  const { cursor } = data as { cursor?: string }
  const answer = await again.get(`/api/updates?cursor=${cursor}`)
  again.close()
  await after.stop()
  return answer
}
