/** What `broadside fsck` calls damage in the directory of a stopped board. */

import { checkBoard, type Finding } from '../../src/fsck/fsck.ts'
import { machineDisk } from '../../storage/machine-disk.ts'

export function findDamage(path: string): Finding[] {
  const damages: Finding[] = []
  const onFinding = (finding: Finding) => finding.kind === 'damage' && damages.push(finding)
  checkBoard({ disk: machineDisk, path, onFinding, onProgress: () => {}, verify: undefined })
  return damages
}
