/** Invariants of webhooks: each delivery is for its address and signed, nothing is missing, and nothing arrives after the end. */
import { SigningKey, secretKey, signatures } from '../../src/webhooks/signature.ts'
import { must } from './board.ts'
import { type Hook, type Model, type Post, secretMark } from './model.ts'
import type { Person } from './people.ts'
import type { ReceivedDelivery } from './targets.ts'

type Delivery = {
  readonly name: string
  readonly data: { readonly event_id?: string; readonly room?: string }
}

/** Checks a delivery to the address of a webhook. */
export function checkDelivery({ id, hook: name, timestamp, signature, body }: ReceivedDelivery, model: Model): void {
  const hook = model.hooks.get(name)
  // A webhook whose creation was refused, or cut off before its answer, may have got this far.
  if (hook === undefined) return
  const { secret } = (model.sent.get(name)?.reply?.data?.webhook ?? {}) as { readonly secret?: string }
  if (secret !== undefined) {
    const keys = [new SigningKey(secretKey(secret)!)]
    must(
      signatures(keys, { id, timestamp, body }) === signature,
      'a delivery is not signed with the secret of its webhook',
    )
  }
  const { name: kind, data } = JSON.parse(body) as Delivery
  const room = model.rooms.get(data?.room ?? '')
  const mayRead = room === undefined || !room.isPrivate || room.everAllowed.has(hook.by)
  must(mayRead, 'a webhook got what its owner may not read')
  const isSecret = body.includes(secretMark) && room?.isPrivate !== true
  must(!isSecret || isAddressee(hook.by, body, model), 'a webhook got a secret that is not for its owner')
  if (kind !== 'room.post' || data.event_id === undefined) return
  must(data.room === hook.room, 'a webhook got a post of another room')
  hook.delivered.add(data.event_id)
  const sent = model.sent.get(data.event_id)
  const made = model.sent.get(name)!
  if (sent === undefined) return
  must(
    sent.answeredAt === undefined || sent.answeredAt > made.number,
    'a webhook received an event from before its creation',
  )
  must(hook.endedAt === undefined || sent.number < hook.endedAt, 'a webhook got what came after its end')
}

/** Whether it has the text of a conversation that was opened with them. */
function isAddressee({ id }: Person, body: string, { sent }: Model): boolean {
  return [...sent.values()].some(({ fields: { operation, members, text } }) => {
    return (
      operation === 'conversation.open' && Array.isArray(members) && members.includes(id) && body.includes(String(text))
    )
  })
}

/** A post that a webhook is for and has not received. */
export function undelivered(model: Model): { readonly hook: Hook; readonly post: Post } | undefined {
  for (const hook of model.hooks.values()) {
    const made = model.sent.get(hook.id)!
    const isSure = made.standing === 'accepted' && !hook.mayEnd && !model.everSuspended.has(hook.by)
    if (!isSure || hook.room === undefined || model.isPrivate(hook.room)) continue
    for (const post of model.posts.values()) {
      if (post.room !== hook.room || post.id !== post.original || hook.delivered.has(post.id)) continue
      const { number } = model.sent.get(post.id)!
      if (number >= made.answeredAt! && !model.mayBeRemoved(post.id)) return { hook, post }
    }
  }
  return undefined
}
