/**
 * Compares a record of a whole-board export with the command that its author signed. What repeats the command must not contradict it.
 * Everything else in the record is what the old board decided, and its word.
 */
import { hex } from '../../actors/kernel/hex.ts'
import { operationByName } from '../../actors/operations.ts'
import { type BoardRecord, type FactRecord, type PostRecord, RecordType } from '../../actors/records/record.ts'
import { checkShown } from '../export-check/shown-fields.ts'
import { dataOf, type Fields, textOf } from '../export-check/signed-line.ts'

/** Answers about events on earlier lines, by id (32 hex). */
export type EarlierEvents = {
  /** The event itself if it is an original, else that of which it is a version; undefined if it is on no earlier line. */
  original(id: string): string | undefined
  /** The first event of its thread; undefined if it is on no earlier line. */
  root(id: string): string | undefined
}

/** What in the record is not what was signed; undefined if nothing is. `id`: of the command, 32 hex. */
export function contradictionIn(
  record: BoardRecord,
  id: string,
  command: Fields,
  events: EarlierEvents,
): string | undefined {
  const operation = operationByName.get(textOf(command.operation))?.name
  switch (record.type) {
    case RecordType.event:
      return inEvent(record, id, command, events)
    case RecordType.roomCreated:
      return operation === 'room.create' && command.room === record.room
        ? undefined
        : 'the signed bytes do not create this room'
    case RecordType.handleClaimed:
      return operation === 'identity.register' && command.handle === record.handle
        ? undefined
        : 'the signed bytes do not claim this handle'
    case RecordType.act:
      return operation === record.op
        ? inAct(record, command, events)
        : `op is ${record.op}, but the signed bytes are for ${textOf(command.operation)}`
  }
}

function inEvent(record: PostRecord, id: string, command: Fields, events: EarlierEvents): string | undefined {
  const { room, page, kind, reply, root, original, blobs = [] } = record
  const isVersion = original !== undefined
  const keepsPage = isVersion || (reply !== undefined && command.page === undefined)
  const { format, source } = dataOf(command)
  // What the event shows in an export of messages. Text, format and source are taken from the signed bytes.
  const shown = checkShown(
    {
      ...{ text: command.text, to: command.to, format, source },
      ...(record.to === undefined ? {} : { to_id: hex(record.to) }),
      room,
      page: keepsPage ? (command.page ?? 'main') : page,
      kind: isVersion ? (command.kind ?? 'note') : kind,
      attachments: blobs.map((blob) => ({ id: hex(blob) })),
      ...(isVersion ? { supersedes: hex(original), reply_to: command.reply_to } : {}),
      ...(isVersion || reply === undefined ? {} : { reply_to: hex(reply) }),
      thread: hex(root ?? original ?? Buffer.from(id, 'hex')),
      command_sha256: id,
    },
    command,
  )
  if ('problem' in shown) return shown.problem
  for (const { field, signed, shown: named } of shown.renamed)
    if (events.original(signed) !== named) return `the ${field} shown is not the one that was signed`
  const answered = original ?? reply
  if (answered !== undefined && events.root(hex(answered)) !== hex(root ?? answered))
    return 'root is not the first event of the thread'
  return undefined
}

function inAct({ room, op, facts }: FactRecord, command: Fields, events: EarlierEvents): string | undefined {
  const isOfRoom = textOf(command.room) !== '' && !room.startsWith('@')
  if (isOfRoom && command.room !== room) return 'room is not the one that was signed'
  const target = textOf(command.target)
  if (target !== '' && typeof facts.target === 'string' && facts.target !== target)
    return 'facts/target is not the one that was signed'
  if (op === 'identity.rotate' && facts.to !== target) return 'facts/to is not the key that was signed'
  const about = facts.id
  const event = textOf(command.event_id)
  if (!(about instanceof Uint8Array) || event === '') return undefined
  const named = op.startsWith('thread.') ? events.root(event) : events.original(event)
  return named === hex(about) ? undefined : 'facts/id is not the event that was signed'
}
