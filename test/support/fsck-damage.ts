/** What `broadside fsck` calls damage in the directory of a stopped board. */
import { checkBoard, type Finding } from '../../src/fsck/fsck.ts'

export function damagesOf(path: string): Finding[] {
  const damages: Finding[] = []
  const onFinding = (finding: Finding) => finding.kind === 'damage' && damages.push(finding)
  checkBoard({ path, onFinding, onProgress: () => {}, verify: undefined })
  return damages
}
