/** Where the log keeps its derived files: known to the thread that writes them and to those that read. */
import { join } from 'node:path'

/** Node hashes of the tree, in tlog order; rebuilt from the log's frames when missing. */
export const nodesFile = (directory: string): string => join(directory, 'nodes.bin')
