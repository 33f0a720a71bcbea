/** How long a test waits for a condition: the wait ends as soon as it holds, and a slow machine fails nothing. */
export const patience = { timeout: 120_000, interval: 50 } as const
