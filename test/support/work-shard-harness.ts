/** A shard with a room of ada in which works are requested, for the tests of works in rooms. */
import { expect } from 'vitest'
import type { Observation, TellArgs } from '../../actors/works/letters.ts'
import { type Decided, person, ShardHarness } from './shard-harness.ts'

export const room = 'den'
export const postArgs = { page: '', kind: '', replyTo: '', supersedes: '', attachments: [], ttl: 0, proofBits: 0 }

/** What the market reports of a work that bob has claimed. */
export const claimedState = { state: 'claimed', worker: person('bob'), fence: 1, states: [] } as const

export const moderationArgs = (event: string) => ({ args: { event, reason: 'because' } })

export function requestArgs(work: string) {
  return { work, reviewer: '', page: '', proofBits: 0 }
}

export function accepted(decided: Decided): Extract<Decided, { ok: true }> {
  if (!decided.ok) throw new Error(`${decided.refusal.code}: ${decided.refusal.message}`)
  return decided
}

export function refusalCode(decided: Decided): string {
  return decided.ok ? '' : decided.refusal.code
}

export class WorkShardHarness extends ShardHarness {
  #tells = 0

  /** A room of ada, who is also the requester, with bob as its member, and a request posted by work.create. */
  createRoomAndRequest(visibility: 'public' | 'private' = 'public'): string {
    accepted(this.send('ada', 'room.create', room, { args: { visibility, members: [person('bob')], text: '' } }))
    return this.postRequest()
  }

  postRequest(): string {
    return accepted(this.send('ada', 'work.post', room, { text: 'please', args: requestArgs('') })).id
  }

  tell(work: string, more: Partial<TellArgs> = {}): void {
    this.#tells += 1
    const args: TellArgs = {
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
    accepted(this.send('board', 'work.tell', room, { args: args, via: 'receiver' }))
  }

  deliver(work: string, text = 'done', who = 'bob'): string {
    return accepted(this.send(who, 'post', room, { text, args: { ...postArgs, kind: 'result', replyTo: work } })).id
  }

  edit(supersedes: string, text: string, who = 'bob'): string {
    return accepted(this.send(who, 'post', room, { text, args: { ...postArgs, supersedes } })).id
  }

  bind(work: string, result: string, who = 'bob') {
    const { reply } = accepted(this.send(who, 'work.bind', room, { args: { work, result }, via: 'receiver' }))
    return reply as { id?: string; sha256?: string; author?: string; reply_to?: string; fault?: { code: string } }
  }

  /** What the market has not been told yet. */
  unreported(): Omit<Observation, 'work' | 'n' | 'result'>[] {
    return this.state.bound.unreported().map(({ work, n, result, ...what }) => what)
  }

  /** Whatever was done, a replay and a snapshot give the same state. */
  expectSameAfterReplay(): void {
    const { replayed, unpacked } = this.replay()
    const packed = JSON.stringify(this.state.bound.pack())
    expect(JSON.stringify(replayed.bound.pack())).toBe(packed)
    expect(JSON.stringify(unpacked.bound.pack())).toBe(packed)
  }
}
