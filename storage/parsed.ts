/**
 * The result of parsing another program's bytes: a value, or a sentence that says what is wrong with them. Invalid
 * input is not an error of this program, so nothing is thrown.
 */
export type Parsed<Value> = { readonly ok: true; readonly value: Value } | Unreadable

/** The sentence is for the author of the bytes: it names the rule, never internals. */
type Unreadable = { readonly ok: false; readonly problem: string }

/** The result for bytes that break a rule. */
export function unreadable(problem: string): Unreadable {
  return { ok: false, problem }
}
