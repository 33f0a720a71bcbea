/**
 * Keys and notes for the tests of notes, checkpoints and proof files. The log key and its signatures are those of the composed example in
 * facts: seed 32 x 0x11, checked there with Go's note package and @sigstore/verify.
 */
import { createPrivateKey, createPublicKey, sign } from 'node:crypto'
import {
  cosignedBytes,
  formatVkey,
  KEY_TYPE,
  keyIdOf,
  parseVkey,
  type Signer,
  type VerifierKey,
} from '../../storage/note.ts'
import { createNoteKey } from '../../storage/note-signer.ts'

export const ORIGIN = 'board.example/log/2026a'
export const LOG_VKEY = 'board.example/log/2026a+34815444+AdBKsjJ0K7SrOhNovUYV5ObQIkq3GgFrr4UgozLJd4c3'
export const WITNESS_VKEY = 'witness.example/w1+d92427b4+BBfLefsrQSDysexl5BmNbgiyjoE/6wHkpACDm4XhgIDO'

/** The composed checkpoint of the empty log, signed. */
export const EMPTY_CHECKPOINT = `board.example/log/2026a
0
47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=

\u2014 board.example/log/2026a NIFURI3XMeAIazllkN/7vTgDvRFPkqqbbi66cCDXh8vt/FZ5TeVAh8CkORcEocWIeQbcJ4yw6lktkFtM30QjA1sMRAY=
`

/** The composed checkpoint of eight entries, signed. */
export const EIGHT_CHECKPOINT = `board.example/log/2026a
8
m4S7+7fcgTLrk3spJmrV9eWFNOk/BwIcGL9JNNWrRE0=

\u2014 board.example/log/2026a NIFURBIm69gz095k7fefK/eUxOhq+QiHo0vaZsrrDmSfc+zkhsX4RztPYhscqVG1YhyGsXxiEq98v51YJX+ULzjMOAU=
`

export const logKey = createNoteKey(ORIGIN, Buffer.alloc(32, 0x11))
export const otherKey = createNoteKey('other.example/log/2026a', Buffer.alloc(32, 0x22))

/** A public key that must be valid. */
export function pinned(vkey: string): VerifierKey {
  const key = parseVkey(vkey)
  if (!key.ok) throw new Error(key.problem)
  return key.value
}

/** A witness with this seed that cosigns at this time. */
export function witness(name: string, seed: number, seconds: bigint): { signer: Signer; key: VerifierKey } {
  const pkcs8 = Buffer.concat([Buffer.from('302e020100300506032b657004220420', 'hex'), Buffer.alloc(32, seed)])
  const privateKey = createPrivateKey({ key: pkcs8, format: 'der', type: 'pkcs8' })
  const publicKey = createPublicKey(privateKey).export({ format: 'der', type: 'spki' }).subarray(-32)
  const time = Buffer.alloc(8)
  time.writeBigUInt64BE(seconds)
  return {
    signer: {
      name,
      keyId: keyIdOf(name, KEY_TYPE.cosignature, publicKey),
      sign: (text) => Buffer.concat([time, sign(null, cosignedBytes(text, seconds), privateKey)]),
    },
    key: pinned(formatVkey({ name, type: KEY_TYPE.cosignature, publicKey })),
  }
}

/** The bytes with one byte changed in every bit, removed, doubled, or preceded by a line feed: at every offset. */
export function* mangled(bytes: Buffer): Generator<{ readonly at: number; readonly bytes: Buffer }> {
  for (let at = 0; at < bytes.length; at += 1) {
    const [before, byte, after] = [bytes.subarray(0, at), bytes[at] as number, bytes.subarray(at + 1)]
    for (let bit = 0; bit < 8; bit += 1)
      yield { at, bytes: Buffer.concat([before, Buffer.of(byte ^ (1 << bit)), after]) }
    yield { at, bytes: Buffer.concat([before, after]) }
    yield { at, bytes: Buffer.concat([before, Buffer.of(byte, byte), after]) }
    yield { at, bytes: Buffer.concat([before, Buffer.of(0x0a, byte), after]) }
    yield { at, bytes: Buffer.concat([before, Buffer.of(0x0d, byte), after]) }
    yield { at, bytes: before }
  }
}
