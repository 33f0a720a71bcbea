/** Signed posts like those of a corpus: a thousand authors, two hundred rooms, five replies in six, texts of 100 to 300 bytes. */
import { hash } from 'node:crypto'
import { type SignedCommand, type Signer, signCommand, signerFromSeed } from '../src/cli/sign.ts'
import { requestBytes } from './lane.ts'

const authors = 1000
export const roomCount = 200
const knownMax = 40
const words =
  'the board keeps every post signed and proven so that anyone can check what was said when and by whom without asking it again ☂ log root leaf'.split(
    ' ',
  )

export type SignedPost = { readonly eventId: string; readonly room: string; readonly request: Buffer }

let signers: Signer[] | undefined
let signed = 0
/** Event ids by room that were acknowledged in an earlier load, which replies may refer to. */
const known = new Map<string, string[]>()

/** Signs the next `count` posts, into this many `rooms`. With `mark` they go to one room, none a reply, and the text ends in the mark. */
export function signPosts(
  serviceId: string,
  count: number,
  mark?: { room: string; text: string },
  rooms: number = roomCount,
): SignedPost[] {
  signers ??= Array.from({ length: authors }, (_, n) => signerFromSeed(hash('sha256', `bench author ${n}`, 'buffer')))
  const nowSeconds = Math.floor(Date.now() / 1000)
  return Array.from({ length: count }, () => {
    const n = signed++
    const room = mark?.room ?? `room-${(n * 7919) % rooms}`
    const parents = known.get(room) ?? []
    const parent = mark !== undefined || n % 6 === 0 ? undefined : parents[(n * 31) % parents.length]
    const fields = { operation: 'post', room, text: textOf(n) + (mark?.text ?? '') }
    const reply = parent === undefined ? {} : { reply_to: parent }
    const signer = signers![(n * 613) % authors]!
    const command: SignedCommand = signCommand({ ...fields, ...reply }, { signer, serviceId, nowSeconds })
    return { eventId: command.eventId, room, request: requestBytes('/v1/command', command.body) }
  })
}

const headEnd = '\r\n\r\n'

/** Only the signed command. */
export function bodyOf({ request }: SignedPost): Buffer {
  return request.subarray(request.indexOf(headEnd) + headEnd.length)
}

/** These are now on the board. */
export function remember(posts: readonly SignedPost[]): void {
  for (const { eventId, room } of posts) {
    const ids = known.get(room) ?? []
    ids.push(eventId)
    if (ids.length > knownMax) ids.shift()
    known.set(room, ids)
  }
}

/** Each text is unique. */
function textOf(n: number): string {
  let text = `${n}`
  const length = 100 + ((n * 97) % 180)
  for (let k = 0; text.length < length; k++) text += ` ${words[(n + k * k) % words.length]}`
  return text
}
