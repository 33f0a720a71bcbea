/**
 * Every field of every line of an export changed, one at a time: the change is detected, or the field is documented as the board's word.
 */
import { expect, test, vi } from 'vitest'
import { boardClaimsHelp } from '../../../src/cli/verify.ts'
import { verifyProofJson } from '../../../src/cli/verify-proof.ts'
import { checkShown } from '../../../src/export-check/shown-fields.ts'
import { parseVkey } from '../../../storage/note.ts'
import { CachingVerifier, isBoardAssertion, mutationsOf } from '../../support/line-mutations.ts'
import { ComposedExport, composedLogKey, type Json, person } from './composed-export.ts'

vi.setConfig({ testTimeout: 300_000 })

const [ada, bob, newBob] = [person(1), person(2), person(3)]
const parsed = parseVkey(composedLogKey.vkey)
if (!parsed.ok) throw new Error(parsed.problem)
const key = parsed.value
const many = new CachingVerifier(key)

const blob = { filename: 'a.txt', media_type: 'text/plain', size: 4, sha256: 'e'.repeat(64), url: '/a/x' }
const views = { votes: { up: 1, down: 0, score: 1 }, via: 'command', format: 'text', attachments: [] }

/** A line of every kind of event. */
function varied(): ComposedExport {
  const made = new ComposedExport()
  const post = (command: Json, shown: Json = {}, signer = ada): Json =>
    made.event({ operation: 'post', ...command }, { ...views, ...shown }, signer)
  const work = { schema: 1, title: 'A thing to do' }
  const first = post({ text: 'plain' }, { author: { id: ada.id, public_key: ada.publicKey, handle: 'ada' } })
  const original = String(first.event_id)
  post(
    { text: 'elsewhere', room: 'hall', page: 'side', kind: 'request' },
    { room: 'hall', page: 'side', kind: 'request' },
  )
  const files = ['a', 'b'].map((byte) => byte.repeat(32))
  post(
    { text: '*with files*', attachments: files, data: '{"schema":1,"format":"markdown"}' },
    { format: 'markdown', attachments: files.map((id) => ({ id, ...blob })) },
  )
  post({ text: 'an answer', reply_to: original, to: ada.id }, { reply_to: original, to: ada.id, thread: original }, bob)
  const answer = { reply_to: original, thread: original }
  post({ text: 'on its page', reply_to: original }, { ...answer, actual_page: 'side' }, bob)
  post({ text: 'on another', reply_to: original, page: 'top' }, { ...answer, page: 'top' }, bob)
  const version = { supersedes: original, thread: original }
  const data = JSON.stringify({ schema: 1, supersedes: original })
  first.superseded_by = post({ text: 'said better', data }, version).event_id
  const kept = { ...version, format: 'markdown' }
  post({ text: '*said*', data: JSON.stringify({ schema: 1, supersedes: original, format: 'markdown' }) }, kept)
  post({ text: '*said again*', data }, { ...version, actual_format: 'markdown' })
  const asked = { kind: 'request', room: 'market' }
  const create = { operation: 'work.create', room: 'market', text: 'do this', amount: 10, data: JSON.stringify(work) }
  const request = String(made.event(create, { ...views, ...asked }, ada).event_id)
  const better = { ...views, room: 'market', supersedes: request, thread: request }
  made.event({ operation: 'work.edit', event_id: request, text: 'do that' }, better, ada)
  made.event({ operation: 'work.edit', event_id: request, text: 'or that' }, { ...better, actual_kind: 'request' }, ada)
  const review = { operation: 'tools.review', target: 's_0123456789abcdef', kind: 'works', text: 'it works' }
  made.event(review, { ...views, room: 'reviews', kind: 'review' }, bob)
  made.rotate(bob, newBob)
  made.post('with the new key', newBob, { id: bob.id })
  made.redact(made.post('taken away', ada))
  made.other()
  return made
}

const lines = varied().lines()

test('an unchanged export verifies', async () => {
  expect(await many.verify(lines)).toMatchObject({ failures: 0, unsettled: 0, isSignedByLog: true })
})

test.each(lines.map((line, n) => [n, `${line.type} ${String(line.text ?? '')}`] as const))(
  'line %i, %s: a change of any field is detected, or the field is the board’s word',
  async (n) => {
    const unfound = await many.undetected(lines, n)
    expect(unfound.filter((change) => !isBoardAssertion(lines[n]!, change))).toEqual([])
  },
)

test('a change of any field of a proof is detected, unless it only omits something optional', () => {
  const composed = varied()
  const [proof, other] = composed.records.slice(0, 2).map((record) => composed.proof(record))
  const accepted = mutationsOf(proof!, other).filter(({ line }) => {
    try {
      return verifyProofJson(line, key).eventId !== ''
    } catch {
      return false
    }
  })
  const names = accepted.map(({ path, how }) => `${path} ${how}`).sort()
  const absent = ['log', 'log.origin', 'log.vkey', 'signed_payload'].map((path) => `${path} left out`)
  expect(names).toEqual([...absent, 'log emptied'].sort())
})

test('a signature of another operation makes no text anybody’s', () => {
  const value = { text: 'yes' }
  for (const operation of ['vote', 'room.create', 'identity.register', 'no.such', 'constructor'])
    expect(checkShown(value, { operation, text: 'yes' })).toEqual({ problem: expect.stringContaining(operation) })
  const posted = { operation: 'work.create', event_id: 'a'.repeat(32), text: 'yes' }
  expect(checkShown(value, posted)).toEqual({ problem: expect.stringContaining('creates no event') })
})

test('the command’s help says what is the board’s word', () => {
  const help = boardClaimsHelp.join('\n')
  for (const field of ['author.handle', 'votes', 'via', 'superseded_by', 'sha256', 'thread', 'reason'])
    expect(help).toContain(field)
})
