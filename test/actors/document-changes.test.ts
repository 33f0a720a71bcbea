/** Which version of a document a change wrote, also after a start from a snapshot that an older release has written. */
import { expect, test } from 'vitest'
import { Documents, versionOfChange } from '../../actors/documents/documents.ts'
import { State } from '../../actors/state.ts'

test('a snapshot of an older release knows the change of the newest version, and later ones are added to it', () => {
  const documents = new Documents(new State())
  const id = 'd'.repeat(32)
  const older = [id, 'hall', 'e'.repeat(64), 'public', 'Title', 0, [3, 5, 9], 100, 200, false, 40] as const
  documents.restore([older])
  const doc = documents.find(id)!
  expect([12, 31, 40].map((position) => versionOfChange(doc, position))).toEqual([0, 0, 3])
  doc.places.push(11)
  doc.changes.push(52)
  expect([31, 40, 52].map((position) => versionOfChange(doc, position))).toEqual([0, 3, 4])
  const again = new Documents(new State())
  again.restore(documents.pack())
  expect(versionOfChange(again.find(id)!, 40)).toBe(3)
})
