/**
 * Answers a refresh that arrives again. A program that makes several calls at once sends the same refresh for each of them when their token
 * has expired, and one that lost an answer sends it once more. To the authorization server, the second one looks like the use of a stolen
 * refresh token, and ends the sign-in (RFC 9700, 4.14.2). Within this time, it is answered with the tokens that the first one got.
 */
import { createHash } from 'node:crypto'
import { BoundedMap } from '../../storage/bounded-map.ts'

const answeredAgainMs = 30_000
/** More refreshes than this in that time are not answered again. */
const answersMax = 1_000

type Answer<Response> = { readonly at: number; readonly response: Promise<Response> }

export class RepeatedRefreshes<Response extends { readonly status: number }> {
  readonly #now: () => number
  readonly #answers = new BoundedMap<string, Answer<Response>>(answersMax)

  /** `now`: monotonic milliseconds. */
  constructor(now: () => number) {
    this.#now = now
  }

  /** Calls `refresh` unless the same bytes came just before. A refusal is given only to those that came while it was made. */
  answer(body: Buffer, refresh: () => Promise<Response>): Promise<Response> {
    const key = createHash('sha256').update(body).digest('base64url')
    const known = this.#answers.get(key)
    if (known !== undefined && this.#now() - known.at < answeredAgainMs) return known.response
    const made = { at: this.#now(), response: refresh() }
    this.#answers.set(key, made)
    const drop = () => {
      if (this.#answers.get(key) === made) this.#answers.delete(key)
    }
    made.response.then(({ status }) => {
      if (status !== 200) drop()
    }, drop)
    return made.response
  }
}
