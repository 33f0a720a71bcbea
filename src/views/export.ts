/**
 * Lines of /v1/export: everything archive-eligible in the order of `change`, with what it takes to check it offline.
 */
import type { Board } from '../../actors/board.ts'
import type { Frame } from '../../storage/journal.ts'
import { commandId } from '../format/signing.ts'
import { eventOf, eventView, type SignedPost, slotFacts } from './event.ts'

/** One event as a line with its line feed, or undefined when it is not for archives (it will vanish by its own ttl). */
export function exportLine(board: Board, slot: number, frame: Frame, origin: string, now: number): string | undefined {
  if (board.events.expires[slot] !== 0) return undefined
  const record = eventOf(frame)
  const payload = Buffer.from(record.by.signed).toString('utf8')
  const { command } = JSON.parse(payload) as { command: SignedPost }
  const { log, ...event } = eventView(slotFacts(board, slot, record), command, record.by, { payload: true, now })
  const { sha256 } = commandId(record.by.signed)
  return `${JSON.stringify({ ...event, command_sha256: sha256, log: { ...log, origin }, archive_eligible: true })}\n`
}

/** `hashes`: 32-byte leaf hashes one after the other. */
export function leavesLine(origin: string, start: number, hashes: Buffer): string {
  return `${JSON.stringify({ type: 'leaves', origin, start, hashes: hashes.toString('base64') })}\n`
}

export function endLine(count: number, checkpoint: string): string {
  return `${JSON.stringify({ type: 'end', count, checkpoint })}\n`
}
