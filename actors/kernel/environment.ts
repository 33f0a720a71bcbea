/**
 * The one setting that is needed before there is a configuration: the numbers in LIMITS are part of schemas that are
 * made when their modules load, in every thread.
 */
export function limitsText(): string {
  return process.env.LIMITS ?? ''
}
