/**
 * Kinds of events that are delivered to those who asked for them, by MCP Events and by plain webhooks: their names alone, for
 * threads that check no schema and shall not load what does.
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

/** A caller with a token or a delegation without this scope gets only what is public. */
export const privateScope = 'board:read'

/** What is its reader's alone: nothing of it is public. */
const privateKinds: ReadonlySet<string> = new Set<HookKind>(['inbox.item', 'receiver.item'])

export function isPrivateKind(kind: string): boolean {
  return privateKinds.has(kind)
}

/** Characters of a text that a delivery shows. */
export const excerptChars = 500

export function isHookKind(name: string): name is HookKind {
  return (hookKinds as readonly string[]).includes(name)
}
