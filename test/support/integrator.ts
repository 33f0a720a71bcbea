/** A separate process that integrates posts from disk, and reports each head that it has published: to be killed. */
import { writeSync } from 'node:fs'
import { integrate } from './posts-on-disk.ts'

const [directory = '', posts = '', segmentBytesMax = '', entriesPerFrameMax = ''] = process.argv.slice(2)
integrate({
  directory,
  posts: Number(posts),
  segmentBytesMax: Number(segmentBytesMax),
  entriesPerFrameMax: Number(entriesPerFrameMax),
  onHead: (_size, checkpoint) => writeSync(1, `${JSON.stringify(checkpoint)}\n`),
})
