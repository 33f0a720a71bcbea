/** What a log that has no frame yet means: a board without posts, or a log that was lost. */
import { logDirectory } from '../board-directory.ts'

/** Records that making the first rooms takes: each room, and the policy of one that has a keeper. */
const firstRecords = 3

/**
 * What is wrong where the log has no frame and the shards' journals end at these records: nothing is posted before there is a
 * log, so an empty one beside records that people made was lost. Undefined: nothing.
 */
export function lostLog(dataDirectory: string, through: readonly number[]): string | undefined {
  const records = through.reduce((sum, each) => sum + each, 0)
  if (records <= firstRecords) return undefined
  return `The signed log in ${logDirectory(dataDirectory)} is missing, though this board has ${records} records: a new log could contradict what the old one signed. Restore the directory from the newest backup.`
}
