/** The image of a state in one piece, to compare two of them. */
import type { Image } from '../../storage/snapshot.ts'

export function imageBytes({ bytes, columns }: Image): Buffer {
  return Buffer.concat([bytes, ...columns])
}
