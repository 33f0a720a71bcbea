/** JSON from other programs that is handed on: what is nested too deep to be written again counts as none. */
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
