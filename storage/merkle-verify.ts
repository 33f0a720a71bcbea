/**
 * Checks Merkle proofs as a client does (RFC 9162 sections 2.1.3.2 and 2.1.4.2), step by step and with the RFC's names,
 * so that a reader can compare the two.
 *
 * No input is trusted: a log may claim any index and size, even beyond 2^53. Input that cannot be a proof returns false
 * and never throws.
 */
import { HASH_BYTES, nodeHash } from './merkle.ts'

/**
 * Whether the leaf at this index is in the tree with this size and root.
 *
 * @param path the audit path, leaf's sibling first; 32 bytes each, like the other hashes
 */
export function verifyInclusion(
  index: bigint | number,
  size: bigint | number,
  leafHash: Uint8Array,
  path: readonly Uint8Array[],
  root: Uint8Array,
): boolean {
  const leafIndex = toCount(index)
  const treeSize = toCount(size)
  if (leafIndex === undefined || treeSize === undefined || leafIndex >= treeSize) return false
  if (!isHash(leafHash) || !isHash(root) || !path.every(isHash)) return false
  let fn = leafIndex
  let sn = treeSize - 1n
  let r = leafHash
  for (const p of path) {
    if (sn === 0n) return false
    if (isOdd(fn) || fn === sn) {
      r = nodeHash(p, r)
      while (!isOdd(fn) && fn !== 0n) {
        fn >>= 1n
        sn >>= 1n
      }
    } else {
      r = nodeHash(r, p)
    }
    fn >>= 1n
    sn >>= 1n
  }
  return sn === 0n && isEqual(r, root)
}

/**
 * Whether the tree of `to` leaves begins with the tree of `from` leaves.
 *
 * Equal sizes need equal roots and an empty path. An older tree of no leaves is refused: every tree begins with it, so
 * there is nothing to prove, and the caller must handle that case.
 */
export function verifyConsistency(
  from: bigint | number,
  to: bigint | number,
  path: readonly Uint8Array[],
  fromRoot: Uint8Array,
  toRoot: Uint8Array,
): boolean {
  const first = toCount(from)
  const second = toCount(to)
  if (first === undefined || second === undefined || first === 0n || first > second) return false
  // Nothing is hashed here, so the roots need only be equal.
  if (first === second) return path.length === 0 && isEqual(fromRoot, toRoot)
  if (!isHash(fromRoot) || !isHash(toRoot) || !path.every(isHash)) return false
  const [seed, ...rest] = isPowerOfTwo(first) && path.length > 0 ? [fromRoot, ...path] : path
  if (seed === undefined) return false
  let fn = first - 1n
  let sn = second - 1n
  while (isOdd(fn)) {
    fn >>= 1n
    sn >>= 1n
  }
  let fr = seed
  let sr = seed
  for (const c of rest) {
    if (sn === 0n) return false
    if (isOdd(fn) || fn === sn) {
      fr = nodeHash(c, fr)
      sr = nodeHash(c, sr)
      while (!isOdd(fn) && fn !== 0n) {
        fn >>= 1n
        sn >>= 1n
      }
    } else {
      sr = nodeHash(sr, c)
    }
    fn >>= 1n
    sn >>= 1n
  }
  return sn === 0n && isEqual(fr, fromRoot) && isEqual(sr, toRoot)
}

/** A valid number of leaves, or undefined. */
function toCount(value: bigint | number): bigint | undefined {
  if (typeof value === 'number' && !Number.isSafeInteger(value)) return undefined
  return value < 0 ? undefined : BigInt(value)
}

function isOdd(value: bigint): boolean {
  return (value & 1n) === 1n
}

function isPowerOfTwo(value: bigint): boolean {
  return (value & (value - 1n)) === 0n
}

function isHash(value: Uint8Array): boolean {
  return value.length === HASH_BYTES
}

function isEqual(a: Uint8Array, b: Uint8Array): boolean {
  return Buffer.compare(a, b) === 0
}
