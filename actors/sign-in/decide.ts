/** Decisions about records of the authorization server. The board itself sends these letters; they have no signature. */
import { createHash } from 'node:crypto'
import { type FactRecord, RecordType } from '../records/record.ts'
import { accept, type Deciders, refuse, type Situation, type WriteLetter } from '../records/write.ts'
import { clientsMax, type OauthConsume, type OauthKeep } from './records.ts'

const keep = ({ state, now }: Situation, letter: WriteLetter<OauthKeep>) => {
  const { key } = letter.args
  const isNew = state.oauth.find(key, now) === undefined
  if (isNew && key.startsWith('Client:') && state.oauth.clients(now) >= clientsMax)
    return refuse(
      'overloaded',
      'this board has reached its limit of registered clients: try again later',
      undefined,
      3_600,
    )
  return privateAct(letter, now)
}

/** Single-use records go to the first caller. */
const consume = ({ state, now }: Situation, letter: WriteLetter<OauthConsume>) => {
  const { key, token = '' } = letter.args
  const found = state.oauth.find(key, now)
  if (found === undefined || found.consumedAt !== 0 || found.token !== token)
    return refuse('wrong_state', 'this was already used')
  return privateAct(letter, now)
}

const drop = ({ now }: Situation, letter: WriteLetter<{ readonly key?: string; readonly grant?: string }>) =>
  privateAct(letter, now)

function privateAct(
  letter: WriteLetter<OauthKeep | OauthConsume | { readonly key?: string; readonly grant?: string }>,
  at: number,
) {
  const { op, to: room, author, args } = letter
  const key = createHash('sha256')
    .update(`${op} ${JSON.stringify(args)}`)
    .digest()
    .subarray(0, 16)
  const record: FactRecord = { type: RecordType.act, room, at, author: Buffer.from(author, 'hex'), op, facts: args }
  return accept([{ record, key, isPublic: false }], { at })
}

export const oauthDeciders = {
  'oauth.keep': keep,
  'oauth.consume': consume,
  'oauth.drop': drop,
} satisfies Deciders
