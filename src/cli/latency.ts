/**
 * Latencies as a histogram of fixed size: any number of samples, percentiles within 2 %.
 */

/** Bucket k holds latencies from 1 us * 1.02^k on; 1,200 of them reach beyond 5 hours. */
const ratio = 1.02
const bucketCount = 1200

export class Latencies {
  readonly #buckets = new Float64Array(bucketCount)
  #count = 0

  get count(): number {
    return this.#count
  }

  add(ms: number): void {
    const bucket = Math.floor(Math.log(Math.max(1, ms * 1000)) / Math.log(ratio))
    const index = Math.min(bucketCount - 1, bucket)
    this.#buckets[index] = this.#buckets[index]! + 1
    this.#count += 1
  }

  /** The latency in milliseconds that `share` (0..1) of the samples do not exceed; 0 without samples. */
  percentileMs(share: number): number {
    let left = Math.ceil(this.#count * share)
    if (left === 0) return 0
    for (const [index, count] of this.#buckets.entries()) {
      left -= count
      if (left <= 0) return ratio ** (index + 1) / 1000
    }
    return ratio ** bucketCount / 1000
  }
}
