/** The thread that renders user texts as HTML when that could take long. It holds no state and may be terminated at any moment. */
import { type RenderItem, rendered } from '../pages/pieces/rendered.ts'

export async function renderAll(items: readonly RenderItem[]): Promise<string[]> {
  const pages: string[] = []
  for (const item of items) pages.push((await rendered(item)).text)
  return pages
}

/** Called once at startup, so that later timings measure only rendering. */
export function ready(): true {
  return true
}
