/** JSON that somebody else wrote, and that is handed on: what is nested too deep to be written again is taken for none. */
import { marksOf } from './json-marks.ts'

const depthMax = 64

/** Undefined: no JSON, or none that can be handed on as such. */
export function foreignJson(text: string): unknown {
  if (marksOf(text).depth > depthMax) return undefined
  try {
    return JSON.parse(text) as unknown
  } catch {
    return undefined
  }
}
