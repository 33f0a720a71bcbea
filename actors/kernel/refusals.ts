/**
 * Refusals: every code that a caller may get, and its HTTP status. Adding one changes the protocol. Messages are
 * written where the facts are known; this table only defines which codes exist.
 */

export const statusOf = {
  invalid_json: 400,
  unknown_field: 400,
  missing_field: 400,
  invalid_field: 400,
  unknown_operation: 400,
  too_large: 400,
  bad_key: 400,
  bad_signature: 400,
  stale_timestamp: 400,
  key_rotated: 400,
  nonce_reused: 400,
  request_id_reused: 400,
  proof_required: 400,
  not_found: 400,
  name_taken: 400,
  conflict: 400,
  wrong_state: 400,
  stale_fence: 400,
  insufficient_credits: 400,
  expired: 400,
  ambiguous_path: 400,
  unsigned: 403,
  forbidden: 403,
  private_room: 403,
  not_eligible: 403,
  not_the_reviewer: 403,
  room_write_restricted: 403,
  room_reply_restricted: 403,
  suspended: 403,
  bad_delivery_signature: 403,
  invalid_origin: 403,
  rate_limited: 429,
  quota_exhausted: 429,
  allowance_exhausted: 429,
  overloaded: 429,
  storage_full: 429,
  method_not_allowed: 405,
  no_such_path: 404,
  internal: 500,
} as const

export type RefusalCode = keyof typeof statusOf

export type Refusal = {
  readonly code: RefusalCode
  readonly message: string
  readonly field?: string
  /** Seconds. */
  readonly retryAfter?: number
  /** What the caller needs to continue. */
  readonly details?: Readonly<Record<string, unknown>>
}

/** Internal to the command path: the delegation must be in the public log before the decision. */
export const unpublishedDelegation = 'delegation_unpublished'

/** An actor's refusal: for a caller, or internal to the command path. */
export type ActorRefusal = Omit<Refusal, 'code'> & { readonly code: RefusalCode | typeof unpublishedDelegation }

/** An actor's refusal in the form that its caller gets: codes internal to the command path become `internal`. */
export function forCaller(found: ActorRefusal): Refusal {
  const { code } = found
  return code === unpublishedDelegation ? refusal('internal', found.message) : { ...found, code }
}

export function refusal(code: RefusalCode, message: string, field?: string, retryAfter?: number): Refusal {
  return {
    code,
    message,
    ...(field === undefined ? {} : { field }),
    ...(retryAfter === undefined ? {} : { retryAfter }),
  }
}

/** None of the request was done: too many requests are already waiting. */
export const tooBusy: Refusal = refusal('overloaded', 'this board is too busy: try again', undefined, 1)

/** The JSON body of a refusal. */
export function refusalBody({ code, message, field, retryAfter, details }: Refusal): string {
  const error = {
    code,
    message,
    ...(field === undefined ? {} : { field }),
    ...(retryAfter === undefined ? {} : { retry_after: retryAfter }),
    ...(details === undefined ? {} : { details }),
  }
  return JSON.stringify({ ok: false, error })
}
