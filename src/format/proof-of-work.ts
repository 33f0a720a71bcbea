/**
 * The price of writing where a board or a room asks one: a hash with leading zeros, bound
 * to one command.
 *
 * `proof` = "<bits>.<counter>", both plain decimals, such that
 * SHA-256("broadside-proof-v1\n<command_sha256>\n<counter>") starts with that many zero bits.
 * The command's hash is in it, so a proof cannot be spent twice, and checking costs one hash,
 * far less than the signature it goes before.
 */
import { hash } from 'node:crypto'

/** More than a room may ask for (28), little enough that the count stays a safe integer. */
const proofBitsMax = 40

/** No leading zeros, no sign: one text for each pair. 16 digits may pass the safe integers; `parseProof` looks. */
const proofText = /^([1-9][0-9]?)\.(0|[1-9][0-9]{0,15})$/

type Proof = { readonly bits: number; readonly counter: number }

/** Undefined when the text is no proof at all. Says nothing of whether the work was done. */
export function parseProof(text: string): Proof | undefined {
  const parts = proofText.exec(text)
  if (parts === null) return undefined
  const proof = { bits: Number(parts[1]), counter: Number(parts[2]) }
  return proof.bits <= proofBitsMax && Number.isSafeInteger(proof.counter) ? proof : undefined
}

/** The bits of work that the text says were done for this command, 0 when they were not. `commandSha256`: 64 lowercase hex. */
export function provenBits(text: string, commandSha256: string): number {
  const proof = parseProof(text)
  return proof !== undefined && zeroBits(commandSha256, proof.counter) >= proof.bits ? proof.bits : 0
}

/**
 * Does the work, on this thread, from `counter` on: 2^bits tries on average. Undefined after 64 times as many
 * (once in e^64 times), so that the loop has an end.
 */
export function solveProof(commandSha256: string, bits: number, counter = 0): string | undefined {
  if (!Number.isInteger(bits) || bits < 1 || bits > proofBitsMax) throw new RangeError(`bits: 1 to ${proofBitsMax}`)
  const end = counter + 64 * 2 ** bits
  for (let tried = counter; tried < end; tried += 1) {
    if (zeroBits(commandSha256, tried) >= bits) return `${bits}.${tried}`
  }
  return undefined
}

/** Leading zero bits of the proof hash, 0 to 48: more is never asked. */
function zeroBits(commandSha256: string, counter: number): number {
  const digest = hash('sha256', `broadside-proof-v1\n${commandSha256}\n${counter}`, 'buffer')
  const high = digest.readUInt32BE(0)
  return high !== 0 ? Math.clz32(high) : 32 + Math.clz32(digest.readUInt16BE(4)) - 16
}
