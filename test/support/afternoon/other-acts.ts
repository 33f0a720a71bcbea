/** What people do besides posting: they write documents in races, and services deliver to their receive URLs. */
import { docOf, writeFields } from '../documents.ts'
import type { Receiver } from './history.ts'
import { canary, people } from './people-and-rooms.ts'
import type { Act } from './room-acts.ts'
import type { World } from './world.ts'

/** Changes one line of a version that may be outdated: merged, or refused if others changed that line. */
const write: Act = async (world, random) => {
  const { docs } = world.history
  const doc = docs[Math.min(random(docs.length), random(docs.length))]!
  const { room, owner, isUnlisted } = doc
  const members = room === undefined ? [] : room.isPrivate ? room.core : world.history.members.get(room.name)!
  const writers = [...new Set([owner, ...members])]
  await world.with(random, writers, async (who) => {
    const known = [...doc.versions.keys()].sort((a, b) => b - a)
    const base = known[random(Math.min(known.length, 3))]!
    const lines = doc.versions.get(base)!.text.split('\n')
    const at = random(lines.length)
    lines[at] = `${isUnlisted || room?.isPrivate === true ? canary : 'open'} line ${at} by ${who}, ${random(1e9)}`
    const signedText = lines.join('\n')
    const outcome = await world.run(who, writeFields(doc.id, base, signedText), [
      'conflict',
      // Removed from the room since.
      ...(room?.isPrivate === false ? ['room_write_restricted'] : []),
    ])
    if (outcome === undefined) return
    const { version, version_id, merged, text } = docOf(outcome.answer)
    if (doc.versions.has(version)) throw new Error(`version ${version} of ${doc.id} was acknowledged twice`)
    const { sent, answered } = outcome
    const served = merged === undefined ? signedText : (text ?? (await readText(world, who, doc.id, version)))
    doc.versions.set(version, { id: version_id, by: who, base, signedText, text: served, sent, answered })
  })
}

/** A merge that was sent again is acknowledged without its text if not everybody may read the document. */
async function readText(world: World, who: number, target: string, version: number): Promise<string> {
  const read = { operation: 'docs.read', target, data: JSON.stringify({ schema: 1, version }) } as const
  const { answer } = await world.restartingBoard.command(people[who]!, read)
  return docOf(answer).text!
}

let deliveries = 0

const deliver: Act = async (world, random) => {
  const { receivers } = world.history
  const receiver = receivers[random(receivers.length)]!
  const body = `${receiver.posts ? 'open' : canary} delivery dl${deliveries++}q`
  if (!receiver.dedupe) return deliverOnce(world, receiver, body)
  const old = [...receiver.items.values()]
  const known = random(3) === 0 ? old[random(old.length)] : undefined
  if (known !== undefined) return deliverNamed(world, receiver, body, known.name!)
  const name = `name ${deliveries}`
  // An impatient service sends the same again before it was answered.
  await Promise.all(Array.from({ length: 1 + random(2) }, () => deliverNamed(world, receiver, body, name)))
}

/** Nothing names it: if its answer was lost in a kill it is there, or it is not. */
async function deliverOnce(world: World, { url, items, unknown }: Receiver, body: string): Promise<void> {
  const answer = await world.restartingBoard.deliver(url, body, { 'content-type': 'text/plain' })
  if (answer === undefined) return void unknown.add(body)
  const { item, duplicate } = answer.data
  if (answer.status !== 200 || duplicate === true || items.has(item!)) throw new Error(`${body}: ${answer.text}`)
  items.set(item!, { body, name: undefined })
  world.history.acknowledged++
}

/** The same name is the same item, however often it is sent. */
async function deliverNamed(world: World, { url, items }: Receiver, body: string, name: string): Promise<void> {
  const headers = { 'content-type': 'text/plain', 'x-delivery-id': name }
  let isFirst = true
  for (;;) {
    const answer = await world.restartingBoard.deliver(url, body, headers)
    if (answer === undefined) {
      isFirst = false
      continue
    }
    const { item, duplicate } = answer.data
    if (answer.status !== 200) throw new Error(`${body}: ${answer.status} ${answer.text}`)
    const known = items.get(item!)
    if (known !== undefined && known.name !== name) throw new Error(`${name} and ${known.name} are both item ${item}`)
    const other = [...items].find(([number, each]) => each.name === name && number !== item)
    if (other !== undefined) throw new Error(`${name} is item ${other[0]} and item ${item}`)
    if (known === undefined) items.set(item!, { body, name })
    if (duplicate === true || !isFirst) world.history.repeated++
    else world.history.acknowledged++
    return
  }
}

export const otherActs: readonly (readonly [weight: number, act: Act])[] = [
  [8, write],
  [6, deliver],
]
