/** A desk with a room of ada in which works are requested: what the tests of works in rooms have in common. */
import { expect } from 'vitest'
import type { Observation, TellArgs } from '../../actors/works/letters.ts'
import { type Decided, Desk, person } from './desk.ts'

export const room = 'den'
export const post = { page: '', kind: '', replyTo: '', supersedes: '', attachments: [], ttl: 0, proofBits: 0 }

/** What the market reports of a work that bob has claimed. */
export const claimed = { state: 'claimed', worker: person('bob'), fence: 1, states: [] } as const

export const about = (event: string) => ({ args: { event, reason: 'because' } })

export function asRequest(work: string) {
  return { work, reviewer: '', page: '', proofBits: 0 }
}

export function good(decided: Decided): Extract<Decided, { ok: true }> {
  if (!decided.ok) throw new Error(`${decided.refusal.code}: ${decided.refusal.message}`)
  return decided
}

export function code(decided: Decided): string {
  return decided.ok ? '' : decided.refusal.code
}

export class WorkDesk extends Desk {
  #tells = 0

  /** A room of ada, who is also the requester, with bob as its member, and a request posted by work.create. */
  begin(visibility: 'public' | 'private' = 'public'): string {
    good(this.say('ada', 'room.create', room, { args: { visibility, members: [person('bob')], text: '' } }))
    return this.ask()
  }

  ask(): string {
    return good(this.say('ada', 'work.post', room, { text: 'please', args: asRequest('') })).id
  }

  tell(work: string, more: Partial<TellArgs> = {}): void {
    this.#tells += 1
    const told: TellArgs = {
      work,
      n: this.#tells,
      state: 'open',
      live: true,
      requester: person('ada'),
      reviewer: person('ada'),
      worker: '',
      fence: 0,
      result: '',
      sha256: '',
      states: [['open', this.now]],
      ...more,
    }
    good(this.say('board', 'work.tell', room, { args: told, via: 'receiver' }))
  }

  deliver(work: string, text = 'done', who = 'bob'): string {
    return good(this.say(who, 'post', room, { text, args: { ...post, kind: 'result', replyTo: work } })).id
  }

  edit(supersedes: string, text: string, who = 'bob'): string {
    return good(this.say(who, 'post', room, { text, args: { ...post, supersedes } })).id
  }

  bind(work: string, result: string, who = 'bob') {
    const { reply } = good(this.say(who, 'work.bind', room, { args: { work, result }, via: 'receiver' }))
    return reply as { id?: string; sha256?: string; author?: string; reply_to?: string; fault?: { code: string } }
  }

  /** What the market is to be told. */
  heard(): Omit<Observation, 'work' | 'n' | 'result'>[] {
    return this.state.bound.unreported().map(({ work, n, result, ...what }) => what)
  }

  /** Whatever was done, a replay and a snapshot give the same state. */
  expectSameAgain(): void {
    const { replayed, unpacked } = this.again()
    const packed = JSON.stringify(this.state.bound.pack())
    expect(JSON.stringify(replayed.bound.pack())).toBe(packed)
    expect(JSON.stringify(unpacked.bound.pack())).toBe(packed)
  }
}
