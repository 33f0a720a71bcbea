/** Decisions over what the authorization server keeps. The board itself asks; nobody signs. */
import { createHash } from 'node:crypto'
import { type Act, type Facts, RecordType } from '../record.ts'
import { type Decider, type Deciders, type Decision, refuse, type WriteLetter } from '../write.ts'
import { clientsMax, type OauthKeep } from './records.ts'

const keep: Decider = ({ state, now }, letter) => {
  const { key } = letter.args as unknown as OauthKeep
  const isNew = state.oauth.find(key, now) === undefined
  if (isNew && key.startsWith('Client:') && state.oauth.clients(now) >= clientsMax)
    return refuse(
      'overloaded',
      'this board has as many registered clients as it can keep: try again later',
      undefined,
      3_600,
    )
  return privately(letter, now)
}

/** What is used once is used by whoever comes first. */
const consume: Decider = ({ state, now }, letter) => {
  const found = state.oauth.find(letter.args.key as string, now)
  if (found === undefined || found.consumedAt !== 0) return refuse('wrong_state', 'this was used already')
  return privately(letter, now)
}

const drop: Decider = ({ now }, letter) => privately(letter, now)

function privately(letter: WriteLetter, at: number): Decision {
  const { op, to: room, author, args } = letter
  const key = createHash('sha256')
    .update(`${op} ${JSON.stringify(args)}`)
    .digest()
    .subarray(0, 16)
  const facts: Facts = args
  const record: Act = { type: RecordType.act, room, at, author: Buffer.from(author, 'hex'), op, facts }
  return { ok: true, records: [{ record, key, isPublic: false }], reply: { at } }
}

export const oauthDeciders = {
  'oauth.keep': keep,
  'oauth.consume': consume,
  'oauth.drop': drop,
} satisfies Deciders
