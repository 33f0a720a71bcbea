/** The Merkle tree straight from the definitions in RFC 9162 section 2.1, recursive and slow, to compare the real one with. */
import { createHash } from 'node:crypto'

export function sha256(...parts: Uint8Array[]): Buffer {
  const digest = createHash('sha256')
  for (const part of parts) digest.update(part)
  return digest.digest()
}

export function node(left: Uint8Array, right: Uint8Array): Buffer {
  return sha256(Buffer.of(1), left, right)
}

/** A tree of known leaves. Subtree roots are cached, so that many queries stay cheap. */
export class ReferenceTree {
  readonly leaves: readonly Buffer[]
  readonly #roots = new Map<number, Buffer>()

  constructor(entries: readonly Uint8Array[]) {
    this.leaves = entries.map((entry) => sha256(Buffer.of(0), entry))
  }

  /** MTH(D[start:end]). */
  root(end: number, start = 0): Buffer {
    if (end === start) return sha256()
    if (end - start === 1) return this.leaves[start] as Buffer
    const key = start * this.leaves.length + end
    const known = this.#roots.get(key)
    if (known !== undefined) return known
    const k = start + split(end - start)
    const root = node(this.root(k, start), this.root(end, k))
    this.#roots.set(key, root)
    return root
  }

  /** PATH(m, D[start:end]), m counted from start. */
  path(m: number, end: number, start = 0): Buffer[] {
    if (end - start === 1) return []
    const k = split(end - start)
    if (m < k) return [...this.path(m, start + k, start), this.root(end, start + k)]
    return [...this.path(m - k, end, start + k), this.root(start + k, start)]
  }

  /** PROOF(m, D[0:end]); empty for m = end. */
  proof(m: number, end: number): Buffer[] {
    return this.#subproof(m, 0, end, true)
  }

  #subproof(m: number, start: number, end: number, whole: boolean): Buffer[] {
    if (m === end - start) return whole ? [] : [this.root(end, start)]
    const k = split(end - start)
    if (m <= k) return [...this.#subproof(m, start, start + k, whole), this.root(end, start + k)]
    return [...this.#subproof(m - k, start + k, end, false), this.root(start + k, start)]
  }
}

/** The root that a path leads to by the definition of PATH, or undefined if its length is wrong. */
export function rootByPath(m: number, size: number, leaf: Buffer, path: readonly Buffer[]): Buffer | undefined {
  if (m < 0 || m >= size) return undefined
  if (size === 1) return path.length === 0 ? leaf : undefined
  const last = path.at(-1)
  if (last === undefined) return undefined
  const k = split(size)
  const inner = m < k ? rootByPath(m, k, leaf, path.slice(0, -1)) : rootByPath(m - k, size - k, leaf, path.slice(0, -1))
  if (inner === undefined) return undefined
  return m < k ? node(inner, last) : node(last, inner)
}

/** Both roots that a consistency path leads to by the definition of SUBPROOF. */
export function rootsByProof(
  m: number,
  size: number,
  path: readonly Buffer[],
  older: Buffer | undefined,
): readonly [Buffer, Buffer] | undefined {
  if (m < 1 || m > size) return undefined
  const last = path.at(-1)
  if (m === size) {
    const seed = older ?? (path.length === 1 ? last : undefined)
    return seed === undefined || (older !== undefined && path.length > 0) ? undefined : [seed, seed]
  }
  if (last === undefined) return undefined
  const k = split(size)
  const rest = path.slice(0, -1)
  const inner = m <= k ? rootsByProof(m, k, rest, older) : rootsByProof(m - k, size - k, rest, undefined)
  if (inner === undefined) return undefined
  return m <= k ? [inner[0], node(inner[1], last)] : [node(last, inner[0]), node(last, inner[1])]
}

/** The largest power of two smaller than n. */
function split(n: number): number {
  let k = 1
  while (2 * k < n) k *= 2
  return k
}
