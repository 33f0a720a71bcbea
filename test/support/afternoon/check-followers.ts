/** What followers received, checked against the history: each thing once, in its order, nothing of rooms they may not read. */
import type { EventJson } from '../client.ts'
import type { UpdateJson } from '../updates.ts'
import type { Poller, Tail } from './followers.ts'
import type { SentEvent } from './history.ts'
import type { Model } from './model.ts'
import { canary, handleOf, isNamed, people, type Room, receiverRoom, rooms } from './people-and-rooms.ts'
import { same } from './views.ts'

export function checkTails(tails: readonly Tail[], model: Model): void {
  for (const tail of tails) {
    const all = model.versions(tail.room.name)
    same(
      tail.name,
      tail.ids,
      all.map(({ id }) => id),
    )
    for (const event of tail.events) checkContent(model, event, tail.name)
  }
}

/** Content of an event is as it was signed, or absent. */
function checkContent({ history }: Model, { event_id, text, seq, room }: EventJson, what: string): void {
  const posted = history.events.get(event_id)!
  const texts = [posted, ...(posted.original === undefined ? (history.edits.get(event_id) ?? []) : [])].map(
    (each) => each.text,
  )
  if (seq !== posted.seq || room !== posted.room.name || !(text === undefined || texts.includes(text)))
    throw new Error(`${what}: ${event_id} (${seq}) says ${text}, not ${posted.text}`)
}

export function checkPoller({ options, seen, name }: Poller, model: Model): void {
  const { who, kinds } = options
  const { history } = model
  const isHeard = (room: Room) =>
    (options.rooms === undefined || options.rooms.includes(room)) &&
    (!room.isPrivate ||
      (who !== undefined && (room.owner === who || room.core.includes(who) || room.moderator === who)))
  const heard = rooms.filter(isHeard)
  const isAsked = (kind: string) => kinds === undefined || kinds.includes(kind)
  // The board's posts of deliveries are counted elsewhere.
  const of = (kind: string) => seen.filter(({ type, room }) => type === kind && room !== receiverRoom.name)
  const idOf = ({ event }: UpdateJson) => event!.event_id
  for (const { event } of seen)
    if (event !== undefined && event.room !== receiverRoom.name) checkContent(model, event, name)
  for (const kind of ['event.posted', 'event.superseded']) {
    if (!isAsked(kind)) continue
    const found = of(kind)
    for (const { name: room } of heard) {
      const inRoom = found.filter((update) => update.room === room).map(idOf)
      const expected = model
        .versions(room)
        .filter(({ original }) => (original !== undefined) === (kind !== 'event.posted'))
      // The first post of each room was made before anybody followed.
      const later = expected.filter(({ seq }) => seq > 1).map(({ id }) => id)
      if (room !== receiverRoom.name) same(`${name}: ${kind} in ${room}`, inRoom, later)
    }
    const openly = found.filter(({ room }) => !room!.startsWith(canary)).map(idOf)
    const places = openly.map((id) => history.events.get(id)!.leaf!)
    same(
      `${name}: order of ${kind}`,
      places,
      [...places].sort((a, b) => a - b),
    )
    const count = heard.reduce((sum, { name: room }) => sum + found.filter((update) => update.room === room).length, 0)
    same(`${name}: ${kind} of other rooms`, [found.length], [count])
  }
  for (const [kind, op] of [
    ['event.hidden', 'room.hide'],
    ['event.restored', 'room.restore'],
    ['event.redacted', 'event.redact'],
  ] as const) {
    if (!isAsked(kind)) continue
    const actions = history.moderation.filter((action) => action.op === op && heard.includes(action.room))
    const originals = actions.map(({ target }) => history.events.get(target!)!.original ?? target!)
    same(`${name}: ${kind}`, of(kind).map(idOf).sort(), originals.sort())
  }
  checkRest(model, { options, seen, name }, heard, isAsked)
}

type Followed = Pick<Poller, 'options' | 'seen' | 'name'>

function checkRest(
  model: Model,
  { options, seen, name }: Followed,
  heard: Room[],
  isAsked: (kind: string) => boolean,
): void {
  const { who } = options
  const { history } = model
  const of = (kind: string) => seen.filter(({ type }) => type === kind)
  if (isAsked('document.written')) {
    const docs = history.docs.filter(({ room }) => room !== undefined && heard.includes(room))
    const expected = docs.flatMap(({ id, versions }) => Array<string>(versions.size - 1).fill(id))
    same(
      `${name}: documents`,
      of('document.written')
        .map((update) => update.document)
        .sort(),
      expected.sort(),
    )
  }
  if (isAsked('receiver.item') && options.rooms === undefined) {
    const own = history.receivers.filter(({ owner }) => owner === who)
    for (const { id, items, unknown } of own) {
      const told = of('receiver.item').filter(({ receiver }) => receiver === id).length
      if (told < items.size || told > items.size + unknown.size)
        throw new Error(`${name}: ${told} items of ${id}, which has ${items.size}, and perhaps ${unknown.size} more`)
    }
    const others = of('receiver.item').filter(({ receiver }) => !own.some(({ id }) => id === receiver))
    same(`${name}: items of others`, others, [])
  }
  if (who === undefined) return same(`${name}: replies`, [...of('reply'), ...of('mention')], [])
  const toAll = heard.flatMap(({ name: room }) => model.originals(room)).filter(({ by, seq }) => by !== who && seq > 1)
  const isReply = ({ replyTo }: SentEvent) => replyTo !== undefined && history.events.get(replyTo)!.by === who
  if (isAsked('reply'))
    same(
      `${name}: replies`,
      idsOf(of('reply')),
      toAll
        .filter(isReply)
        .map(({ id }) => id)
        .sort(),
    )
  if (isAsked('mention')) {
    // For replies and edited posts the text at delivery time decides: an edit adds or removes a mention, and so does a hide. Whatever was
    // delivered of those is in one of their versions.
    const isSettled = (posted: SentEvent) =>
      !history.edits.has(posted.id) && !(isReply(posted) && model.everRemoved.has(posted.id))
    const expected = toAll.filter((posted) => isSettled(posted) && speaksTo(posted, who)).map(({ id }) => id)
    const [told, open] = [true, false].map((settled) =>
      idsOf(of('mention')).filter((id) => isSettled(history.events.get(id)!) === settled),
    ) as [string[], string[]]
    const isInNone = (id: string) =>
      ![history.events.get(id)!, ...(history.edits.get(id) ?? [])].some((version) => speaksTo(version, who))
    same(`${name}: mentions in no version`, open.filter(isInNone), [])
    same(`${name}: mentions`, told, expected.sort())
  }
}

function speaksTo({ to, text }: SentEvent, who: number): boolean {
  return to === people[who]!.id || (isNamed(who) && text.includes(`@${handleOf(who)} `))
}

function idsOf(updates: readonly UpdateJson[]): string[] {
  return updates.map(({ event }) => event!.event_id).sort()
}
