/** What a box that may lead reports in /healthz while it could not. */
import { expect, test } from 'vitest'
import { Vacancy } from '../../../src/board/vacancy.ts'
import { Notices } from '../../../src/notices.ts'

const standing = { behindMs: 0, problem: undefined, obstacle: undefined, leader: undefined, withoutStream: undefined }

test('a box that does not read the stream says that it cannot take over, until it does', () => {
  const notices = new Notices()
  const vacancy = new Vacancy({ problem: () => undefined, notices, onVacant: () => {}, reported: undefined })
  vacancy.standing(standing)
  expect(notices.health).toBe('ok\n')
  vacancy.standing({ ...standing, withoutStream: 'The servers are out of reach.' })
  expect(notices.health).toBe('ok\nlead: This box cannot take over now: The servers are out of reach.\n')
  vacancy.standing(standing)
  expect(notices.health).toBe('ok\n')
})
