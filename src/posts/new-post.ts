/** What the answer to a post shows of it beside what was sent. */
import type { Body } from '../reads/event-view.ts'

/** What its author, put out of a private room since, is shown of a post: that it stands, and where. */
export const outOfSight: Body = { gone: { reason: 'you do not read this room any more', by: undefined }, to: undefined }

/** What a post has of marks when it is new. */
export const untouched = {
  votes: { up: 0, down: 0, score: 0 },
  supersedes: '',
  supersededBy: '',
  versionId: '',
  versions: 0,
  editedAt: 0,
}
