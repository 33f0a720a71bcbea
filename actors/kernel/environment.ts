/**
 * The one variable that is needed before there is a configuration: the numbers in LIMITS stand in schemas that are made when
 * their modules load, in every thread.
 */
export function limitsText(): string {
  return process.env.LIMITS ?? ''
}
