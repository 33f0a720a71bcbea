/** Almost valid bytes, for fuzzing parsers. */

/** A number from 0 up to, but not including, `below`. */
export type Random = (below: number) => number

/** Values at which lengths, counts and types change their meaning. */
const boundaryValues = [
  0x00, 0x01, 0x0a, 0x0d, 0x20, 0x22, 0x2c, 0x3a, 0x5b, 0x5c, 0x7b, 0x7f, 0x80, 0xc0, 0xc1, 0xdf, 0xfe, 0xff,
]

/** A sample with one to six changes: bits, boundary values, bytes inserted, removed, repeated, moved, or taken from another sample. */
export function mutate(samples: readonly Buffer[], random: Random): Buffer {
  let bytes: Buffer = Buffer.from(samples[random(samples.length)]!)
  for (let changes = 1 + random(6); changes > 0; changes--) bytes = mutateOnce(bytes, samples, random)
  return bytes
}

function mutateOnce(bytes: Buffer, samples: readonly Buffer[], random: Random): Buffer {
  if (bytes.length === 0) return Buffer.from([random(256)])
  const at = random(bytes.length)
  const length = 1 + random(Math.min(16, bytes.length - at))
  const [before, part, after] = [bytes.subarray(0, at), bytes.subarray(at, at + length), bytes.subarray(at + length)]
  switch (random(9)) {
    case 0:
      bytes[at]! ^= 1 << random(8)
      return bytes
    case 1:
      bytes[at] = boundaryValues[random(boundaryValues.length)]!
      return bytes
    case 2:
      return Buffer.concat([before, after])
    case 3:
      return Buffer.concat([before, part, part, after])
    case 4:
      return Buffer.concat([before, Buffer.from(Array.from({ length }, () => random(256))), part, after])
    case 5:
      return before
    case 6:
      return Buffer.concat([after, part, before])
    case 7:
      part.fill(boundaryValues[random(boundaryValues.length)]!)
      return bytes
    default: {
      const other = samples[random(samples.length)]!
      const from = random(other.length + 1)
      return Buffer.concat([before, other.subarray(from, from + 64), after])
    }
  }
}
