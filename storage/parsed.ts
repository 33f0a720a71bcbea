/**
 * What reading somebody else's bytes gives: a value, or a sentence that says
 * what is wrong with them. Being wrong is no error of ours, so nothing is thrown.
 */
export type Parsed<Value> = { readonly ok: true; readonly value: Value } | Unreadable

/** The sentence is for the one who wrote the bytes: it names the rule, never our insides. */
type Unreadable = { readonly ok: false; readonly problem: string }

/** The answer to bytes that break a rule. */
export function unreadable(problem: string): Unreadable {
  return { ok: false, problem }
}
