/** How long a test waits for what must come: it ends as soon as that is there, and a slow machine fails nothing. */
export const patience = { timeout: 120_000, interval: 50 } as const
