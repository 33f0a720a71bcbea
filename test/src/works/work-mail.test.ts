/** The courier between market and rooms: what is handed over is taken once, told in order with its notice, and marked as said in one record for many. */
import { expect, test } from 'vitest'
import { boardHandle } from '../../../actors/people/handles.ts'
import type { SignedNotice } from '../../../actors/works/letters.ts'
import type { Actors } from '../../../src/command/ports.ts'
import type { MailJson, ToldJson } from '../../../src/works/mail-reads.ts'
import { Courier } from '../../../src/works/work-mail.ts'

type Written = { readonly op: string; readonly args: Readonly<Record<string, unknown>> }

const board = '0'.repeat(64)

/** A board of one shard with an outbox, and a clock that the test moves. */
function office(count: number, pageMax = 128, isPublic = true) {
  const outbox = Array.from({ length: count }, (_, n) => toldOf(n + 1))
  const reads: unknown[] = []
  const unsettled: object[] = []
  const written: Written[] = []
  const later: (() => void)[] = []
  const refusing = new Set<string>()
  const handles = new Map<string, string>()
  const mailOf = (told: readonly ToldJson[]): MailJson => ({
    asks: [],
    told,
    observations: [],
    more: told.length === pageMax,
    unheard: false,
  })
  const actors = {
    shards: 1,
    write: ({ op, args }: Written, answer: (answer: unknown, head: undefined) => void) => {
      written.push({ op, args })
      if (refusing.has(op)) return answer({ ok: false, refusal: { code: 'overloaded' } }, undefined)
      answer({ ok: true, reply: { page: 'main', isPublic } }, undefined)
    },
    readPrivate: (
      _shard: number,
      { op, args }: { readonly op: string; readonly args: { readonly told: number } },
      answer: (found: object | undefined) => void,
    ) => {
      reads.push({ ...args })
      if (refusing.has('read') || refusing.has(op)) return answer(undefined)
      if (op === 'works.unsettled') return answer({ ok: true, json: JSON.stringify(unsettled) })
      const told = outbox.filter(({ seq }) => seq > args.told).slice(0, pageMax)
      queueMicrotask(() => answer({ ok: true, json: JSON.stringify(mailOf(told)) }))
    },
  }
  const courier = new Courier({
    actors: actors as unknown as Actors,
    sign: ({ reply_to }) => {
      const signed = Buffer.from(String(reply_to))
      return { sha: Buffer.alloc(32), by: { key: Buffer.alloc(32), sig: Buffer.alloc(64), signed } }
    },
    board,
    handles,
    generation: '1'.repeat(32),
    screen: () => {},
    noteChange: () => {},
    later: (callback) => later.push(callback),
    report: () => {},
  })
  const opOf = (op: string) => written.filter((each) => each.op === op)
  /** Numbers of the records that rooms were told of, and whether the notice came with it. */
  const tells = () => opOf('work.tell').map(({ args }) => [args.n, args.notice !== undefined])
  /** Everything that waits for a time to pass runs. */
  const pass = () => {
    for (const callback of later.splice(0)) callback()
  }
  const told = (work: string) => new Promise<void>((resolve) => courier.whenTold(work, resolve))
  return { courier, outbox, unsettled, handles, reads, refusing, mailOf, opOf, tells, pass, told }
}

function toldOf(seq: number): ToldJson {
  const work = String(seq).padStart(32, '0')
  const notices = [
    { number: 1, transition: 'create', at: 1, fence: 0, set: {}, amount: 1, paid: 0, simulated: false, deadline: 2 },
  ] as unknown as ToldJson['notices']
  return { seq, work, room: 'den', tell: { work, n: seq } as ToldJson['tell'], worker: '', notices }
}

test('what is handed over is told with its notice, once, and one record marks it all', async () => {
  const { courier, outbox, handles, reads, mailOf, opOf, tells, pass, told } = office(3)
  courier.mail(0, mailOf(outbox))
  await told(outbox[2]!.work)
  // Of a work whose page is not known the room is asked for it; the same letter again brings the notice.
  expect(tells()).toEqual(
    [1, 2, 3].flatMap((n) => [
      [n, false],
      [n, true],
    ]),
  )
  const notices = opOf('work.tell').flatMap(({ args }) => (args.notice as SignedNotice | undefined) ?? [])
  expect(notices.map(({ by, page }) => [Buffer.from(by.signed).toString(), page])).toEqual(
    outbox.map(({ work }) => [work, 'main']),
  )
  expect([opOf('handle.claim').length, handles.get(board)]).toEqual([1, boardHandle])
  expect(opOf('mail.sent')).toEqual([])
  pass()
  expect(opOf('mail.sent').map(({ args }) => args)).toEqual([{ seqs: [1, 2, 3] }])
  // Handed over once more, as by a thread that began anew, it has no effect.
  courier.mail(0, mailOf(outbox))
  await told(outbox[2]!.work)
  expect([tells().length, reads]).toEqual([6, []])
  expect(courier.roomOf(outbox[1]!.work)).toBe('den')
})

test('notices of a private room do not give the board its name, which everybody would see', async () => {
  const { courier, outbox, handles, mailOf, opOf, tells, told } = office(1, 128, false)
  courier.mail(0, mailOf(outbox))
  await told(outbox[0]!.work)
  expect([tells(), opOf('handle.claim'), handles.size]).toEqual([
    [
      [1, false],
      [1, true],
    ],
    [],
    0,
  ])
})

test('a later transition of a work comes with its notice in one letter', async () => {
  const { courier, outbox, mailOf, tells, told } = office(1)
  const [first] = outbox
  courier.mail(0, mailOf([first!]))
  courier.mail(0, mailOf([{ ...first!, seq: 2, tell: { ...first!.tell, n: 2 } }]))
  await told(first!.work)
  expect(tells()).toEqual([
    [1, false],
    [1, true],
    [2, true],
  ])
})

test('whoever waits for a work waits until the whole outbox is read, however many pages it has, and as often as it takes', async () => {
  const { courier, outbox, reads, refusing, mailOf, tells, pass, told } = office(5, 2)
  refusing.add('read')
  courier.mail(0)
  let isTold = false
  const waiting = told(outbox[4]!.work).then(() => {
    isTold = true
  })
  // Nothing is taken before what came first.
  courier.mail(0, mailOf([outbox[4]!]))
  await new Promise(setImmediate)
  expect([tells(), isTold]).toEqual([[], false])
  refusing.clear()
  pass()
  await waiting
  expect(tells().flatMap(([n, isSaid]) => (isSaid ? [n] : []))).toEqual([1, 2, 3, 4, 5])
  expect(reads.slice(0, 2)).toEqual([
    { asks: 0, told: 0 },
    { asks: 0, told: 0 },
  ])
})

test('what could not be marked as said is marked later', async () => {
  const { courier, outbox, refusing, mailOf, opOf, pass, told } = office(2)
  refusing.add('mail.sent')
  courier.mail(0, mailOf(outbox))
  await told(outbox[0]!.work)
  pass()
  refusing.clear()
  pass()
  pass()
  expect(opOf('mail.sent').map(({ args }) => args)).toEqual([{ seqs: [1, 2] }, { seqs: [1, 2] }])
  pass()
  expect(opOf('mail.sent')).toHaveLength(2)
})

test('what a room has bound and the market did not take is let go at a start, though nobody says at first what that is', async () => {
  const { courier, unsettled, reads, refusing, opOf, pass } = office(0)
  unsettled.push({ work: 'w', command: 'c', room: 'den' })
  refusing.add('works.unsettled')
  let isResumed = false
  const resumed = courier.resume().then(() => {
    isResumed = true
  })
  await expect.poll(() => reads.length).toBeGreaterThan(1)
  expect([isResumed, opOf('work.unbind')]).toEqual([false, []])
  refusing.delete('works.unsettled')
  pass()
  await resumed
  expect(opOf('work.unbind').map(({ args }) => args)).toEqual([{ work: 'w', command: 'c' }])
})
