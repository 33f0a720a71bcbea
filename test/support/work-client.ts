/** Works on a real board: requested, claimed, delivered, judged, by signed commands; and what is visible of them. */
import { expect, vi } from 'vitest'
import type { Signer } from '../../src/cli/sign.ts'
import type { Answer, Client, Fields, ReceiptJson } from './client.ts'
import { patience } from './patience.ts'

export type WorkJson = {
  readonly id: string
  readonly room: string
  readonly title: string
  readonly simulated: boolean
  readonly state: string
  readonly stored_state: string
  readonly fence: number
  readonly claim_expires_at: number
  readonly requester: { readonly id: string }
  readonly worker?: { readonly id: string }
  readonly result_id?: string
  readonly result_available: boolean
  readonly result_sha256?: string
  readonly result_changed_since_submit?: boolean
  readonly reward: { readonly amount: number; readonly fee: number; readonly state: string; readonly reason?: string }
  readonly request: { readonly version_id: string; readonly versions: number; readonly text: string }
}

export type NoticeJson = { readonly text: string; readonly to?: string; readonly author: { readonly handle?: string } }

/** A command about works that has to succeed. */
export class WorkClient {
  readonly client: Client

  constructor(client: Client) {
    this.client = client
  }

  async run(who: Signer, fields: Fields): Promise<{ work: WorkJson; receipt: ReceiptJson; answer: Answer }> {
    const answer = await this.client.command(who, fields)
    expect([fields.operation, answer.status, answer.status === 200 ? '' : answer.text]).toEqual([
      fields.operation,
      200,
      '',
    ])
    const { work, receipt } = answer.data as unknown as { work: WorkJson; receipt: ReceiptJson }
    return { work, receipt, answer }
  }

  /** Code of a refusal. */
  async refusalCode(who: Signer, fields: Fields): Promise<string | undefined> {
    return (await this.client.command(who, fields)).code
  }

  createFields(room: string, amount: number, more: object = {}, data: object = {}): Fields {
    const given = JSON.stringify({ schema: 1, title: 'A thing to do', ...data })
    return { operation: 'work.create', room, text: `do this ${Math.random()}`, amount, data: given, ...more } as Fields
  }

  claimFields(event_id: string, more: object = {}): Fields {
    return { operation: 'work.claim', event_id, data: '{"schema":1}', ...more } as Fields
  }

  /** Posts a reply and returns its id. */
  async deliver(who: Signer, work: string, text: string, more: object = {}): Promise<string> {
    const answer = await this.client.post(who, { text, reply_to: work, kind: 'result', ...more })
    expect([answer.status, answer.status === 200 ? '' : answer.text]).toEqual([200, ''])
    return answer.data.receipt!.event_id
  }

  submitFields(event_id: string, target: string, amount = 1, data: object = {}): Fields {
    return { operation: 'work.submit', event_id, target, amount, data: JSON.stringify({ schema: 1, ...data }) }
  }

  acceptFields(event_id: string, data: object = {}): Fields {
    return { operation: 'work.accept', event_id, data: JSON.stringify({ schema: 1, ...data }) }
  }

  async balance(who: Signer): Promise<{ available: number; held: number }> {
    const { data } = await this.client.command(who, { operation: 'credit.balance' })
    const { available, held } = data as unknown as { available: number; held: number }
    return { available, held }
  }

  /** Waits for the welcome grant. */
  async waitForWelcome(who: Signer, room = 'lobby'): Promise<void> {
    await this.client.post(who, { room, text: `hello ${Math.random()}` })
    await vi.waitFor(async () => expect((await this.balance(who)).available).toBeGreaterThanOrEqual(100), patience)
  }

  /** Notices in the thread of a work, oldest first. */
  async notices(who: Signer, work: string): Promise<NoticeJson[]> {
    const { data } = await this.client.command(who, { operation: 'thread.get', event_id: work, limit: 200 })
    return (data.events ?? []).filter(({ kind }) => kind === 'notice') as unknown as NoticeJson[]
  }
}
