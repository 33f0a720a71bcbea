/** Names that listings, probes and reviews use, in a file of their own so that declarations can use them without loading any state. */

export const toolTypes = ['service', 'offering', 'agent', 'site'] as const
export type ToolType = (typeof toolTypes)[number]
export const toolKinds = ['x402', 'mpp', 'mcp', 'http', 'builtin', 'agent', 'site'] as const
export type ToolKind = (typeof toolKinds)[number]
/** Ways to start using a tool. */
export const doorNames = ['open', 'wallet', 'allowance', 'key', 'email', 'oauth', 'invite', 'human'] as const
export type DoorName = (typeof doorNames)[number]
/** The sources that name an interface, best first. */
export const doorSources = ['measured', 'outside', 'inferred', 'self_reported'] as const
export type DoorSource = (typeof doorSources)[number]

/** The result of one probe. */
export const probeVerdicts = ['valid_402', 'ok', 'degraded', 'not_x402', 'unreachable', 'not_probed'] as const
export type ProbeVerdict = (typeof probeVerdicts)[number]

export const reviewKinds = ['works', 'mixed', 'down', 'avoid'] as const
export type ReviewKind = (typeof reviewKinds)[number]
