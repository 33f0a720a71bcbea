/** Works time out on their own: once the operator has confirmed a jump of the clock, silence pays the worker, though nobody asks. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { skipNote, skipWithout } from '../peers/peers.ts'
import { boardDirectory, startBoard } from '../support/board-process.ts'
import { Client, person } from '../support/client.ts'
import { acceptClock, fakeClock, missingFakeClock } from '../support/fake-clock.ts'
import { World } from '../support/operation-setups.ts'
import { patience } from '../support/patience.ts'
import { workAt } from '../support/work-stages.ts'

vi.setConfig({ testTimeout: 300_000 })

test.skipIf(skipWithout(missingFakeClock))(
  `three days of silence pay the worker${skipNote(missingFakeClock)}`,
  async () => {
    const clockFile = join(boardDirectory(), 'offset')
    writeFileSync(clockFile, '+0\n')
    const operator = person('the operator')
    const env = {
      OPERATORS: operator.id,
      ...fakeClock(clockFile),
    }
    const directory = boardDirectory()
    const board = await startBoard({ directory, env })
    const client = await Client.of(board)
    const { work } = await workAt(new World(client, operator), 'submitted')
    type Record = {
      state: string
      stored_state: string
      updated_at: number
      review_due?: number
      reward: { state: string }
    }
    const read = async () => ((await client.get(`/api/work/${work}`)).data as unknown as { work: Record }).work
    const { review_due: due } = await read()
    writeFileSync(clockFile, '+259300\n')
    await vi.waitUntil(async () => (await client.get('/healthz')).text.includes('clock accept'), patience)
    expect((await read()).state).toBe('submitted')
    await acceptClock(directory, 259_300)
    await vi.waitUntil(async () => (await read()).state === 'accepted', patience)
    // With its due time, whenever it was noticed; and stored soon, though only readers asked.
    await vi.waitUntil(async () => (await read()).stored_state === 'accepted', patience)
    expect(await read()).toMatchObject({
      state: 'accepted',
      updated_at: due,
      reward: { state: 'paid', reason: 'reviewer_silent' },
    })
    client.close()
  },
)
