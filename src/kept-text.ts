/** A small text that is replaced as a whole, durably, without holding up the thread: the mark, and what witnesses have signed. */
import { open, rename } from 'node:fs/promises'

/** Rejects with the error of the system; the file is then the old one or the new one. */
export async function keepText(path: string, text: string): Promise<void> {
  const file = await open(`${path}.tmp`, 'w', 0o600)
  try {
    await file.writeFile(text)
    await file.datasync()
  } finally {
    await file.close()
  }
  await rename(`${path}.tmp`, path)
}
