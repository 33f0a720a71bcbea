/**
 * Reviews of tools: posts in the room `reviews` whose signed command is `tools.review`. Of one author the newest counts for a
 * subject; one that is hidden or redacted counts for nothing.
 */
import { hex } from '../kernel/hex.ts'
import { commandIn, type PostRecord } from '../records/record.ts'

export const reviewsRoom = 'reviews'
export const reviewKinds = ['works', 'mixed', 'down', 'avoid'] as const
type ReviewKind = (typeof reviewKinds)[number]

export type Review = {
  /** Id of the event, 32 hex. */
  readonly id: string
  /** Identity id. */
  readonly author: string
  readonly subject: string
  readonly kind: ReviewKind
  /** Unix seconds. */
  readonly at: number
}

type PackedReviews = {
  readonly reviews: readonly (readonly [id: string, author: string, subject: string, kind: ReviewKind, at: number])[]
  readonly gone: readonly string[]
}

const none: readonly Review[] = []

export class Reviews {
  /** Every one there was, so that a mark on an older one is known for what it is. */
  readonly #byId = new Map<string, Review>()
  /** Subject -> author -> the newest, oldest first. */
  readonly #bySubject = new Map<string, Map<string, Review>>()
  readonly #gone = new Set<string>()

  /** Takes an event; undefined where it is no review. */
  take(event: PostRecord, key: Uint8Array): Review | undefined {
    if (event.room !== reviewsRoom || event.original !== undefined || event.by.signed.length === 0) return undefined
    const command = commandIn(event.by.signed)
    if (command.operation !== 'tools.review') return undefined
    const kind = reviewKinds.find((each) => each === command.kind)
    if (kind === undefined) return undefined
    const review: Review = {
      id: hex(key),
      author: hex(event.author),
      subject: command.target!,
      kind,
      at: event.at,
    }
    this.#add(review)
    return review
  }

  /** An event's text was taken away, or given back. The subject that this is about, if it was a review. */
  mark(event: Uint8Array, isGone: boolean): string | undefined {
    const id = hex(event)
    const review = this.#byId.get(id)
    if (review === undefined) return undefined
    if (isGone) this.#gone.add(id)
    else this.#gone.delete(id)
    return review.subject
  }

  /** What counts for a subject, oldest first. */
  of(subject: string): readonly Review[] {
    const reviews = this.#bySubject.get(subject)
    // Most subjects have none, and a search asks for thousands.
    return reviews === undefined ? none : [...reviews.values()].filter(({ id }) => !this.#gone.has(id))
  }

  find(id: string): Review | undefined {
    return this.#byId.get(id)
  }

  /** Everything that counts now. */
  *all(): Generator<Review> {
    for (const subject of this.#bySubject.keys()) yield* this.of(subject)
  }

  pack(): PackedReviews {
    const reviews = [...this.#byId.values()].map(
      ({ id, author, subject, kind, at }) => [id, author, subject, kind, at] as const,
    )
    return { reviews, gone: [...this.#gone] }
  }

  restore({ reviews, gone }: PackedReviews): void {
    for (const [id, author, subject, kind, at] of reviews) this.#add({ id, author, subject, kind, at })
    for (const id of gone) this.#gone.add(id)
  }

  #add(review: Review): void {
    this.#byId.set(review.id, review)
    const ofSubject = this.#bySubject.get(review.subject) ?? new Map<string, Review>()
    this.#bySubject.set(review.subject, ofSubject)
    // To the end: the map is in order of time.
    ofSubject.delete(review.author)
    ofSubject.set(review.author, review)
  }
}
