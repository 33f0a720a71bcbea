/** A failure in few steps: those without which it still fails are left out, many at a time and then one by one. */
import type { Found, Run } from './world.ts'

type Result = { readonly found?: Found }
export type Shrunk<Made> = { readonly steps: readonly number[]; readonly outcome: Made; readonly runs: number }

/** `again`: runs it; `runsMax`: how often it may be run again. */
export async function shrink<Made extends Result>(
  run: Run,
  first: Made,
  { again, runsMax }: { readonly again: (run: Run) => Promise<Made>; readonly runsMax: number },
): Promise<Shrunk<Made>> {
  const { message } = first.found!
  const isThere = ({ found }: Result) => found?.message === message
  let steps = Array.from({ length: Math.min(run.steps, first.found!.step) }, (_, at) => at + 1)
  if (run.only !== undefined) steps = steps.filter((step) => run.only!.has(step))
  let outcome = first
  let runs = 0
  const tryWith = async (kept: readonly number[]): Promise<boolean> => {
    runs++
    const made = await again({ ...run, steps: Math.max(0, ...kept), only: new Set(kept) })
    if (isThere(made)) outcome = made
    return isThere(made)
  }
  for (let size = Math.ceil(steps.length / 2); size > 0; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    for (let at = steps.length - size; at > -size && runs < runsMax; at -= size) {
      const from = Math.max(0, at)
      const kept = [...steps.slice(0, from), ...steps.slice(from + size + Math.min(0, at))]
      if (kept.length < steps.length && (await tryWith(kept))) steps = kept
    }
  }
  return { steps, outcome, runs }
}
