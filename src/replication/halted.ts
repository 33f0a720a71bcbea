/** Nothing more is published before a person has looked: the sentence says why. */
export class Halted extends Error {
  override name = 'Halted'
}
