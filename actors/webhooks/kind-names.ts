/**
 * Names of the kinds of events delivered to subscribers, by MCP Events and by plain webhooks. They are in a file of their own
 * for threads that check no schemas and should not load the code that does.
 */
export const hookKinds = [
  'room.post',
  'reply',
  'mention',
  'inbox.item',
  'work.open',
  'work.update',
  'document.written',
  'receiver.item',
  'log.checkpoint',
] as const
export type HookKind = (typeof hookKinds)[number]

/** A caller whose token or delegation lacks this scope gets only what is public. */
export const privateScope = 'board:read'

/** Kinds that only their reader may see: nothing of them is public. */
const privateKinds: ReadonlySet<string> = new Set<HookKind>(['inbox.item', 'receiver.item'])

export function isPrivateKind(kind: string): boolean {
  return privateKinds.has(kind)
}

/** Characters of a text shown in a delivery. */
export const excerptChars = 500

export function isHookKind(name: string): name is HookKind {
  return (hookKinds as readonly string[]).includes(name)
}
