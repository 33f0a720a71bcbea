/** A probe requested in an earlier run of the board: its result is in the directory, which may not be readable yet. */

import { expect, test } from 'vitest'
import { refusal } from '../../../actors/kernel/refusals.ts'
import type { Decided } from '../../../src/command/plan.ts'
import type { Verified } from '../../../src/command/verified.ts'
import type { ReadAnswer, ReadCall, Take } from '../../../src/reads/read.ts'
import { ToolProbes } from '../../../src/tools/service.ts'

const sha = Buffer.alloc(32, 7)
const id = sha.toString('hex').slice(0, 32)
const verified = { sha, signer: { id: 'a'.repeat(64) } } as unknown as Verified<'tools.probe'>
const decided = { at: 1_000, facts: { tool: 't', host: 'tool.example' } } as unknown as Decided<'tools.probe'>

function answerOver(found: ReadAnswer | undefined): unknown {
  const read: ReadCall = (_request, answer) => {
    const give: Take = answer
    give(found)
  }
  const probes = new ToolProbes({ read, operators: new Set(), report: () => {} } as unknown as ConstructorParameters<
    typeof ToolProbes
  >[0])
  const answers: unknown[] = []
  probes.answer(verified, decided, true, (answer) => answers.push(answer))
  expect(answers).toHaveLength(1)
  return answers[0]
}

test('a retry gets the recorded result, or the answer that there is none', () => {
  const probe = { id, verdict: 'up' }
  expect(answerOver({ ok: true, value: { probe }, until: 0 })).toMatchObject({ values: { probe } })
  const none = { values: { probe: { id, verdict: 'not_probed' } } }
  expect(answerOver({ ok: true, value: { probe: { id: 'another' } }, until: 0 })).toMatchObject(none)
  expect(answerOver({ ok: false, absent: refusal('not_found', 'no such listing', 'target') })).toMatchObject(none)
})

test('while the directory cannot be read, a retry gets that refusal, and not the answer that there is none', () => {
  const busy = refusal('overloaded', 'the index of the tools directory is being built: try again', undefined, 5)
  const said = { body: expect.stringContaining('"code":"overloaded"'), retryAfter: 5 }
  expect(answerOver({ ok: false, refusal: busy })).toMatchObject(said)
  expect(answerOver(undefined)).toBeUndefined()
})
