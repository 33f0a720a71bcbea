/** The thread on which texts of users become HTML where that could take long. It holds nothing: it may be ended at any moment. */
import { type RenderItem, rendered } from '../pages/pieces/rendered.ts'

export async function renderAll(items: readonly RenderItem[]): Promise<string[]> {
  const pages: string[] = []
  for (const item of items) pages.push((await rendered(item)).text)
  return pages
}

/** Asked once at its beginning: from then on its time is that of the texts. */
export function ready(): true {
  return true
}
