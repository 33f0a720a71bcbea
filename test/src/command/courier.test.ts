/** The courier between market and rooms: what is written down is taken once, told in order, and marked as said in one record for many. */
import { expect, test } from 'vitest'
import { Courier } from '../../../src/command/courier.ts'
import type { Actors } from '../../../src/command/ports.ts'
import type { MailJson, ToldJson } from '../../../src/views/reads/works-mail.ts'

type Written = { readonly op: string; readonly args: Readonly<Record<string, unknown>> }

/** A board of one shard with an outbox, and a clock that the test moves. */
function office(count: number, pageMax = 128) {
  const outbox = Array.from({ length: count }, (_, n) => toldOf(n + 1))
  const reads: unknown[] = []
  const written: Written[] = []
  const said: string[] = []
  const later: (() => void)[] = []
  const refusing = new Set<string>()
  const actors = {
    shards: 1,
    write: ({ op, args }: Written, answer: (answer: unknown, head: undefined) => void) => {
      written.push({ op, args })
      if (refusing.has(op)) return answer({ ok: false, refusal: { code: 'overloaded' } }, undefined)
      answer({ ok: true, reply: { page: 'main' } }, undefined)
    },
    readPrivate: (
      _shard: number,
      { args }: { readonly args: { readonly told: number } },
      answer: (found: object) => void,
    ) => {
      reads.push({ ...args })
      const told = outbox.filter(({ seq }) => seq > args.told).slice(0, pageMax)
      const mail: MailJson = { asks: [], told, observations: [], more: told.length === pageMax, unheard: false }
      queueMicrotask(() => answer({ ok: true, json: JSON.stringify(mail) }))
    },
  }
  const courier = new Courier({
    actors: actors as unknown as Actors,
    say: ({ reply_to }, _cause, respond) => {
      said.push(String(reply_to))
      respond({ status: 200, body: '' })
    },
    board: '0'.repeat(64),
    generation: '1'.repeat(32),
    screen: () => {},
    noteChange: () => {},
    later: (callback) => later.push(callback),
    report: () => {},
  })
  const opOf = (op: string) => written.filter((each) => each.op === op)
  /** Everything that waits for a time to pass runs. */
  const pass = () => {
    for (const callback of later.splice(0)) callback()
  }
  const told = (work: string) => new Promise<void>((resolve) => courier.whenTold(work, resolve))
  return { courier, outbox, reads, said, refusing, opOf, pass, told }
}

function toldOf(seq: number): ToldJson {
  const work = String(seq).padStart(32, '0')
  const notices = [
    { number: 1, transition: 'create', at: 1, fence: 0, set: {}, amount: 1, paid: 0, simulated: false, deadline: 2 },
  ] as unknown as ToldJson['notices']
  return { seq, work, room: 'den', tell: { work, n: seq } as ToldJson['tell'], worker: '', notices }
}

test('notices gather, go on their way together, and one record marks them all', async () => {
  const { courier, outbox, reads, said, opOf, pass, told } = office(3)
  await told(outbox[0]!.work)
  expect(opOf('work.tell')).toHaveLength(3)
  expect(said).toEqual([])
  pass()
  expect(said).toEqual(outbox.map(({ work }) => work))
  pass()
  expect(opOf('mail.sent').map(({ args }) => args)).toEqual([{ seqs: [1, 2, 3] }])
  // Though it is still in the outbox here, it is neither rendered nor told again.
  await told(outbox[0]!.work)
  expect(reads).toEqual([
    { asks: 0, told: 0 },
    { asks: 0, told: 3 },
  ])
  expect(opOf('work.tell')).toHaveLength(3)
  expect(courier.roomOf(outbox[1]!.work)).toBe('den')
})

test('whoever waits for a work waits until the whole outbox is taken, however many pages it has', async () => {
  const { outbox, opOf, told } = office(5, 2)
  await told(outbox[4]!.work)
  expect(opOf('work.tell').map(({ args }) => args.n)).toEqual([1, 2, 3, 4, 5])
})

test('what could not be marked as said is marked later', async () => {
  const { outbox, refusing, opOf, pass, told } = office(2)
  refusing.add('mail.sent')
  await told(outbox[0]!.work)
  pass()
  pass()
  refusing.clear()
  pass()
  pass()
  expect(opOf('mail.sent').map(({ args }) => args)).toEqual([{ seqs: [1, 2] }, { seqs: [1, 2] }])
  pass()
  expect(opOf('mail.sent')).toHaveLength(2)
})
