/** Points and signatures that no honest signer makes, built with noble's Point for the tests. */
import { createHash } from 'node:crypto'
import { Point } from '@noble/ed25519'

export const groupOrder = Point.CURVE().n
const fieldPrime = Point.CURVE().p

/** A point of order 8: L times any point leaves only its torsion part. */
export const torsion8: Point = findTorsion8()

function findTorsion8(): Point {
  for (let y = 2n; ; y += 1n) {
    try {
      const point = Point.fromBytes(littleEndian(y), false)
      const torsion = point.multiply(groupOrder - 1n, false).add(point)
      if (!torsion.multiply(4n, false).is0()) return torsion
    } catch {
      // No point has this y.
    }
  }
}

/** i times the point of order 8; 0 gives the identity. */
export function torsion(i: number): Point {
  return i % 8 === 0 ? Point.ZERO : torsion8.multiply(BigInt(i % 8), false)
}

/** All 14 encodings, canonical or not, that a lenient decoder takes for a point of small order. */
export function smallOrderEncodings(): Buffer[] {
  const order8 = [torsion8.toAffine().y, torsion(3).toAffine().y]
  const ys = [0n, 1n, fieldPrime - 1n, fieldPrime, fieldPrime + 1n, ...order8]
  return ys.flatMap((y) => [littleEndian(y), littleEndian(y | (1n << 255n))])
}

/**
 * Key A = aB + T[keyTorsion], R = rB + T[nonceTorsion], S = r + k·a: only what these torsions do to the equation can be wrong with it.
 * `sPlus` is added to S (L: the same scalar, encoded too large).
 */
export function craft(options: {
  a: bigint
  r: bigint
  keyTorsion: number
  nonceTorsion: number
  message: Uint8Array
  sPlus?: bigint
}): { signature: Buffer; publicKey: Buffer } {
  const { a, r, message } = options
  const publicKey = Buffer.from(multipleOfBase(a).add(torsion(options.keyTorsion)).toBytes())
  const nonce = Buffer.from(multipleOfBase(r).add(torsion(options.nonceTorsion)).toBytes())
  const k = fromLittleEndian(createHash('sha512').update(nonce).update(publicKey).update(message).digest())
  const s = ((r + k * a) % groupOrder) + (options.sPlus ?? 0n)
  return { publicKey, signature: Buffer.concat([nonce, littleEndian(s)]) }
}

function multipleOfBase(scalar: bigint): Point {
  return scalar === 0n ? Point.ZERO : Point.BASE.multiply(scalar, false)
}

function littleEndian(value: bigint): Buffer {
  return Buffer.from(value.toString(16).padStart(64, '0'), 'hex').reverse()
}

function fromLittleEndian(bytes: Uint8Array): bigint {
  return BigInt(`0x${Buffer.from(bytes).reverse().toString('hex')}`)
}
