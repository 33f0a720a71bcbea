/** What an opener may say before any member has accepted the conversation: a little. A block and a silence refuse alike. */
import { commandIn } from '../records/record.ts'
import { type Refused, refuse, type WriteLetter } from '../records/write.ts'

/** Messages of the opener before any member has accepted, and the bytes of each. */
export const requestMessagesMax = 10
export const requestBytesMax = 4_096

/** What of a conversation decides. */
type Begun = {
  /** Identity id. */
  readonly opener: string
  /** A member other than the opener has accepted. */
  readonly accepted: boolean
  /** Messages of the opener before that. */
  readonly sent: number
}

/** Why a post into a conversation is refused before any member has accepted it, or undefined. */
export function postRefusal(conversation: Begun | undefined, letter: WriteLetter): Refused | undefined {
  if (conversation === undefined || conversation.accepted) return undefined
  const command = commandIn(letter.by.signed)
  return messageRefusal(conversation, letter.author, Buffer.byteLength(command.text!))
}

/** The same of a message of so many bytes; `found` undefined: it opens the conversation. */
export function messageRefusal(found: Begun | undefined, author: string, bytes: number): Refused | undefined {
  if (found?.accepted === true || (found !== undefined && found.opener !== author)) return undefined
  if (bytes > requestBytesMax) {
    const until = 'until another member accepts this conversation (conversation.respond)'
    return refuse('too_large', `text has ${bytes} bytes; ${requestBytesMax} are allowed ${until}`, 'text')
  }
  if (found === undefined || found.sent < requestMessagesMax) return undefined
  const message = `no other member has accepted this conversation yet (conversation.respond): until then its opener can send ${requestMessagesMax} messages`
  return refuse('wrong_state', message, 'room')
}
