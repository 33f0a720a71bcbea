/**
 * How much structure a JSON text may have: shared by the fast reader and the one that explains refusals.
 */

/** A command is flat and `data` a few levels deep; deeper is an attack on a parser's recursion. */
export const nestingMax = 32

/**
 * Of `{ [ : ,` outside strings. Each is a byte, so a text of 64 KiB, the largest `data` beside a
 * blob, never meets this; a body of 2 MiB full of brackets would cost 0.3 s and is stopped here.
 */
export const structureMarksMax = 65_536

export type JsonLimits = {
  /** Of `{ [ : ,` outside strings. */
  readonly marksMax: number
  /** Items of an array that is a member of the outermost object: what follows them is not read. */
  readonly itemsMax: number
}

export const anyJson: JsonLimits = { marksMax: structureMarksMax, itemsMax: structureMarksMax }
