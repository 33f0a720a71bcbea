/** What followers received, checked against the book: each thing once, in its order, nothing of rooms they may not read. */
import type { EventJson } from '../client.ts'
import type { UpdateJson } from '../poller.ts'
import type { Said } from './book.ts'
import type { Poller, Tail } from './followers.ts'
import type { Model } from './model.ts'
import { canary, handleOf, isNamed, people, postOffice, type Room, rooms } from './town.ts'
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
function checkContent({ book }: Model, { event_id, text, seq, room }: EventJson, what: string): void {
  const said = book.said.get(event_id)!
  const texts = [said, ...(said.original === undefined ? (book.edits.get(event_id) ?? []) : [])].map(
    (each) => each.text,
  )
  if (seq !== said.seq || room !== said.room.name || !(text === undefined || texts.includes(text)))
    throw new Error(`${what}: ${event_id} (${seq}) says ${text}, not ${said.text}`)
}

export function checkPoller({ options, seen, name }: Poller, model: Model): void {
  const { who, kinds } = options
  const { book } = model
  const isHeard = (room: Room) =>
    (options.rooms === undefined || options.rooms.includes(room)) &&
    (!room.isPrivate ||
      (who !== undefined && (room.owner === who || room.core.includes(who) || room.moderator === who)))
  const heard = rooms.filter(isHeard)
  const isAsked = (kind: string) => kinds === undefined || kinds.includes(kind)
  // The board's posts of deliveries are counted elsewhere.
  const of = (kind: string) => seen.filter(({ type, room }) => type === kind && room !== postOffice.name)
  const idOf = ({ event }: UpdateJson) => event!.event_id
  for (const { event } of seen)
    if (event !== undefined && event.room !== postOffice.name) checkContent(model, event, name)
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
      if (room !== postOffice.name) same(`${name}: ${kind} in ${room}`, inRoom, later)
    }
    const openly = found.filter(({ room }) => !room!.startsWith(canary)).map(idOf)
    const places = openly.map((id) => book.said.get(id)!.leaf!)
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
    const deeds = book.deeds.filter((deed) => deed.op === op && heard.includes(deed.room))
    const originals = deeds.map(({ target }) => book.said.get(target!)!.original ?? target!)
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
  const { book } = model
  const of = (kind: string) => seen.filter(({ type }) => type === kind)
  if (isAsked('document.written')) {
    const docs = book.docs.filter(({ room }) => room !== undefined && heard.includes(room))
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
    const own = book.receivers.filter(({ owner }) => owner === who)
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
  const isReply = ({ replyTo }: Said) => replyTo !== undefined && book.said.get(replyTo)!.by === who
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
    const isSettled = (said: Said) => !book.edits.has(said.id) && !(isReply(said) && model.everGone.has(said.id))
    const expected = toAll.filter((said) => isSettled(said) && speaksTo(said, who)).map(({ id }) => id)
    const [told, open] = [true, false].map((settled) =>
      idsOf(of('mention')).filter((id) => isSettled(book.said.get(id)!) === settled),
    ) as [string[], string[]]
    const isInNone = (id: string) =>
      ![book.said.get(id)!, ...(book.edits.get(id) ?? [])].some((version) => speaksTo(version, who))
    same(`${name}: mentions in no version`, open.filter(isInNone), [])
    same(`${name}: mentions`, told, expected.sort())
  }
}

function speaksTo({ to, text }: Said, who: number): boolean {
  return to === people[who]!.id || (isNamed(who) && text.includes(`@${handleOf(who)} `))
}

function idsOf(updates: readonly UpdateJson[]): string[] {
  return updates.map(({ event }) => event!.event_id).sort()
}
