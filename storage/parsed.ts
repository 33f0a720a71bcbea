/**
 * What reading the bytes of another program gives: a value, or a sentence that says what is wrong with them. Wrong
 * input is not an error of this program, so nothing is thrown.
 */
export type Parsed<Value> = { readonly ok: true; readonly value: Value } | Unreadable

/** The sentence is for the author of the bytes: it names the rule, never internals. */
type Unreadable = { readonly ok: false; readonly problem: string }

/** The answer to bytes that break a rule. */
export function unreadable(problem: string): Unreadable {
  return { ok: false, problem }
}
