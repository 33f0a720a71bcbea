import { readFileSync } from 'node:fs'
import { describe, expect, test, vi } from 'vitest'
import { tooBusy } from '../../actors/kernel/refusals.ts'
import { missingProgram, skipNote, skipWithout } from '../peers/peers.ts'
import { boardDirectory, startBoard } from '../support/board-process.ts'
import { type Answer, Client, person } from '../support/client.ts'
import { Ledger } from '../support/load.ts'
import { Heads, logKeyOf } from '../support/log-checks.ts'
import { randomPart } from '../support/random-part.ts'

vi.setConfig({ testTimeout: 900_000 })

const missing = missingProgram('strace')

/** Runs a board on a disk that takes a second for each sync. */
const slowSyncs = [
  'strace',
  '-f',
  '-qq',
  '-o',
  '/dev/null',
  '-e',
  'trace=fdatasync',
  '-e',
  'inject=fdatasync:delay_enter=1000000',
]

/** Resident memory of the board inside strace, in MiB. */
function residentMb(pid: number): number {
  const [child] = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ')
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${child}/status`, 'utf8'))![1]) / 1024
}

describe.skipIf(skipWithout(missing))(`on a disk that takes a second for each sync${skipNote(missing)}`, () => {
  test('posts share few syncs, memory stays bounded, reads continue, and everything acknowledged is stored', async () => {
    const directory = boardDirectory()
    await (await startBoard({ directory })).stop()
    const board = await startBoard({ directory, under: slowSyncs })
    const client = await Client.of(board)
    const key = await logKeyOf(client)
    const ledger = new Ledger(new Heads(key), key)
    // All at once, 30 KB each: whatever is held for each of them shows in memory.
    const clients = await Promise.all(Array.from({ length: 24 }, () => Client.of(board)))
    const before = residentMb(board.child.pid!)
    let peak = before
    const answers: Promise<void>[] = []
    const text = 'x'.repeat(30_000)
    for (let n = 0; n < 1_500; n += 1) {
      const one = clients[n % clients.length]!
      const signed = one.sign(person(`p${n % 50}`), { operation: 'post', room: `r${n % 3}`, text })
      answers.push(one.send(signed.body).then((answer: Answer) => ledger.record(signed, answer)))
      if (n % 100 === 99) {
        expect((await client.get('/healthz')).status).toBe(200)
        peak = Math.max(peak, residentMb(board.child.pid!))
      }
    }
    await Promise.all(answers)
    console.info(
      `${ledger.acknowledged.size} acknowledged, refused ${JSON.stringify([...ledger.refused])}, ${Math.round(peak - before)} MiB more`,
    )
    expect(peak - before).toBeLessThan(400)
    expect([...ledger.refused.keys()].filter((name) => name !== '429 overloaded')).toEqual([])
    for (const each of clients) each.close()
    client.close()
    await board.kill()
    const again = await startBoard({ directory })
    const later = await Client.of(again)
    await ledger.check(later, 50)
    later.close()
    await again.stop()
  })

  test('when its queues are full it refuses immediately, not when the disk has answered; reads continue, and nothing is lost', async () => {
    const directory = boardDirectory()
    await (await startBoard({ directory })).stop()
    const board = await startBoard({ directory, env: { QUEUE_MAX: '8' }, under: slowSyncs })
    const client = await Client.of(board)
    const key = await logKeyOf(client)
    const ledger = new Ledger(new Heads(key), key)
    /** Sixty concurrent posts; returns how many of them were refused immediately. */
    const refusedAtOnce = async (wave: number): Promise<number> => {
      // One address opens one connection for each pending request.
      const seen: Answer[] = []
      const posts = Array.from({ length: 60 }, (_, n) => {
        const signed = client.sign(person(`p${n}`), { operation: 'post', room: 'r', text: `post ${wave} ${n}` })
        return client.send(signed.body).then((answer: Answer) => {
          ledger.record(signed, answer)
          seen.push(answer)
        })
      })
      await Promise.all(posts)
      const refused = seen.filter(({ status }) => status !== 200)
      for (const answer of refused) {
        expect(answer).toMatchObject({ status: 429, code: 'overloaded' })
        expect(answer.headers['retry-after']).toBe('1')
      }
      expect(60 - refused.length).toBeGreaterThanOrEqual(8)
      // The first success comes after two syncs of a second each: posts refused before that waited for none.
      const atOnce = seen.findIndex(({ status }) => status === 200)
      console.info(`of 60: ${60 - refused.length} acknowledged, ${refused.length} refused, ${atOnce} of them at once`)
      return atOnce
    }
    // A machine that takes longer than two syncs to read sixty requests may need another try.
    let atOnce = await refusedAtOnce(0)
    for (let wave = 1; wave < 5 && atOnce < 60 - 16 - 16; wave++) atOnce = await refusedAtOnce(wave)
    expect(atOnce).toBeGreaterThanOrEqual(60 - 16 - 16)
    // A read overtakes a post: one of several tries suffices, as the machine may be slower than the disk.
    const isOvertaken = async (text: string): Promise<boolean> => {
      let isPosted = false
      const slow = client.sign(person('p0'), { operation: 'post', room: 'r', text })
      const post = client.send(slow.body).then((answer) => {
        isPosted = true
        ledger.record(slow, answer)
      })
      const { events } = (await client.get('/api/events?room=r')).data
      const wasPosted = isPosted
      if (!wasPosted) expect(events).toHaveLength(Math.min(50, ledger.acknowledged.size))
      await post
      // A read waits until everything answered before it is in the log, which has its own sync, over after this one.
      await client.get('/api/events?room=r')
      return !wasPosted
    }
    let tries = 1
    while (!(await isOvertaken(`slowly ${tries}`)) && tries < 10) tries++
    expect(tries).toBeLessThan(10)
    client.close()
    await board.kill()
    const again = await startBoard({ directory })
    const later = await Client.of(again)
    expect(await ledger.check(later, 60)).toHaveLength(ledger.acknowledged.size)
    later.close()
    await again.stop()
  })

  test.each(randomPart(['back', 'threads', 'clerks']))(
    'with PLACEMENT=%s a write that finds the queues full is refused before its signature is checked',
    async (placement) => {
      const directory = boardDirectory()
      await (await startBoard({ directory })).stop()
      const board = await startBoard({ directory, env: { QUEUE_MAX: '4', PLACEMENT: placement }, under: slowSyncs })
      const client = await Client.of(board)
      const refusals = new Set<string>()
      // Twice as many as are accepted, followed by some with invalid signatures.
      for (let wave = 0; wave < 10 && !refusals.has(tooBusy.message); wave++) {
        const posts = Array.from({ length: 16 }, (_, n) =>
          client.post(person(`p${n}`), { room: 'r', text: `${wave} ${n}` }),
        )
        const forged = Array.from({ length: 16 }, (_, n) => {
          const body = JSON.parse(client.sign(person('p'), { operation: 'post', room: 'r', text: `${wave} ${n}` }).body)
          return client.send(JSON.stringify({ ...body, text: 'another' }))
        })
        for (const { text } of await Promise.all(forged)) refusals.add(JSON.parse(text).error.message)
        await Promise.all(posts)
      }
      expect([...refusals]).toContain(tooBusy.message)
      client.close()
      await board.stop()
    },
  )
})
