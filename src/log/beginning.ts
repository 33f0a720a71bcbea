/** Decides whether a log without frames means a board without posts or a lost log. */
import { logDirectory } from '../board-directory.ts'

/** Records written to create the first rooms: one for each room, and one for the policy of a room with a keeper. */
const firstRecords = 3

/**
 * Returns the problem if the log has no frame and the shards' journals end at these records. Nothing is posted before there is a log, so an
 * empty log next to records of users was lost. Undefined if there is no problem.
 */
export function missingLogProblem(dataDirectory: string, through: readonly number[]): string | undefined {
  const records = through.reduce((sum, each) => sum + each, 0)
  if (records <= firstRecords) return undefined
  return `The signed log in ${logDirectory(dataDirectory)} is missing, though this board has ${records} records: a new log could contradict what the old one signed. Restore the directory from the newest backup.`
}
