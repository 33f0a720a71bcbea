/** Documents and items of receive URLs, checked against what was acknowledged. */
import { createHash } from 'node:crypto'
import { mergeTexts } from '../../../actors/documents/merge.ts'
import type { EventJson } from '../client.ts'
import type { DocJson } from '../documents.ts'
import type { ReceivedItem } from '../receiver-board.ts'
import { checkTimes, type Doc, type History, type Receiver } from './history.ts'
import { people, receiverRoom, stranger } from './people-and-rooms.ts'
import type { RestartingBoard } from './restarting-board.ts'
import { each, same, Views } from './views.ts'

export async function checkDocuments({ client }: RestartingBoard, history: History): Promise<number> {
  let merges = 0
  for (const doc of history.docs) {
    const reader = new Views(client, doc.room?.isPrivate === true ? doc.room.core[0]! : stranger)
    merges += await checkDocument(reader, doc)
  }
  const listed = await new Views(client).list<{ id: string; versions: number }>('docs.list', 'docs')
  const open = history.docs.filter(({ room }) => room?.isPrivate === false)
  const named = ({ id, versions }: { id: string; versions: number }) => `${id} ${versions}`
  same(
    'docs.list',
    listed.map(named).sort(),
    open.map((doc) => named({ id: doc.id, versions: doc.versions.size })).sort(),
  )
  return merges
}

async function checkDocument(reader: Views, { id, versions }: Doc): Promise<number> {
  const numbers = [...versions.keys()].sort((a, b) => a - b)
  same(
    `versions of ${id}`,
    numbers,
    [...numbers.keys()].map((n) => n + 1),
  )
  const line = numbers.map((n) => versions.get(n)!)
  checkTimes(line, `versions of ${id}`)
  const history = await reader.list<DocJson>('docs.history', 'versions', { target: id })
  const sha = (text: string) => createHash('sha256').update(text).digest('hex')
  const shapeOf = ({ version, version_id, author, sha256 }: DocJson) => [version, version_id, author.id, sha256]
  const expected = line.map(({ id: version, by, text }, n) => [n + 1, version, people[by]!.id, sha(text)])
  same(`history of ${id}`, history.reverse().map(shapeOf), expected)
  let merges = 0
  await each(numbers, async (n) => {
    const { base, signedText, text } = versions.get(n)!
    const { doc } = await reader.ask('docs.read', { target: id, data: JSON.stringify({ schema: 1, version: n }) })
    const { text: found, signed_payload, merged } = doc as DocJson
    const signed = (JSON.parse(signed_payload!) as { command: { text: string } }).command.text
    same(`version ${n} of ${id}`, [found, signed, merged !== undefined], [text, signedText, base !== n - 1])
    if (base === n - 1) return same(`version ${n} of ${id}`, [text], [signedText])
    merges++
    // Both edits are in it: anybody gets the same text from the same three.
    const again = mergeTexts(versions.get(base)!.text, versions.get(n - 1)!.text, signedText)
    same(`merge ${n} of ${id}`, [text], [again])
  })
  return merges
}

export async function checkReceivers({ client }: RestartingBoard, history: History): Promise<void> {
  for (const receiver of history.receivers) {
    const items = await new Views(client, receiver.owner).list<ReceivedItem>('receiver.items', 'items', {
      target: receiver.id,
    })
    const bodies = new Set<string>()
    items.forEach(({ item, body, headers }, n) => {
      if (item !== n + 1 || bodies.has(body)) throw new Error(`item ${item} is ${n + 1}. of ${receiver.id}: ${body}`)
      bodies.add(body)
      const known = receiver.items.get(item)
      const isExpected = known === undefined ? receiver.unknown.has(body) : known.body === body
      if (!isExpected || headers['x-delivery-id'] !== known?.name)
        throw new Error(`item ${item} is ${body}, expected ${JSON.stringify(known)}`)
    })
    for (const [item, { body }] of receiver.items)
      if (!bodies.has(body)) throw new Error(`item ${item} is lost: ${body}`)
    if (receiver.posts) await checkPosted(new Views(client), receiver, items)
    const { status, code } = await new Views(client, stranger).answer('receiver.items', { target: receiver.id })
    same('the items of another', [`${status} ${code}`], ['400 not_found'])
  }
}

/** Each item is posted once, by the board. Waits for those in flight. */
async function checkPosted(reader: Views, { id }: Receiver, items: readonly ReceivedItem[]): Promise<void> {
  const posted = () =>
    reader.list<EventJson>('events.list', 'events', { room: receiverRoom.name, data: '{"schema":1,"order":"asc"}' })
  let events = await posted()
  while (events.length < items.length) {
    await new Promise((resolve) => setTimeout(resolve, 50))
    events = await posted()
  }
  const { service_identity } = (await reader.client.get('/capabilities')).data as { service_identity?: { id: string } }
  same(
    `posts of ${id}`,
    events.map((event) => [event.seq, event.author.id, event.text?.split('\n\n')[1]]),
    items.map(({ body }, n) => [n + 1, service_identity!.id, body]),
  )
}
