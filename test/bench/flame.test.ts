import { expect, test } from 'vitest'
import { type CpuProfile, flameSvg, framesOf, withoutDirectory } from '../../bench/flame.ts'

const call = (functionName: string, url: string) => ({ functionName, url, lineNumber: 9 })
const profile: CpuProfile = {
  nodes: [
    { id: 1, callFrame: call('(root)', ''), children: [2, 5] },
    { id: 2, callFrame: call('turn', 'file:///srv/board/dist/src/shard.js'), children: [3, 4] },
    { id: 3, callFrame: call('<append>', 'file:///srv/board/node_modules/a/b.js') },
    { id: 4, callFrame: call('decide', 'file:///home/someone/secret/x.js') },
    { id: 5, callFrame: call('(idle)', '') },
  ],
  samples: [3, 4, 5, 3, 2],
  timeDeltas: [100, 50, 9_000, 100, 25],
}

test('the time of a frame includes its callees, and a thread’s excludes the time it waits for events', () => {
  const thread = framesOf('shard', profile)
  expect(thread.us).toBe(275)
  const [turn] = [...thread.children.values()]
  expect(turn).toMatchObject({ name: 'turn', us: 275 })
  expect([...turn!.children.values()].map(({ name, us }) => [name, us])).toEqual([
    ['<append>', 200],
    ['decide', 50],
  ])
})

test('a picture contains no directory of the machine, loads nothing, and is well formed whatever functions are called', () => {
  const thread = framesOf('shard', withoutDirectory(profile, '/srv/board/'))
  const svg = flameSvg({ title: 'a & b', note: '<c>', threads: [thread] })
  expect(svg).toContain('dist/src/shard.js:10')
  expect(svg).toContain('x.js:10')
  expect(svg).not.toMatch(/\/srv\/|\/home\/|someone/)
  expect(svg.replace('http://www.w3.org/2000/svg', '')).not.toMatch(/https?:|@import|\bhref=/)
  expect(svg).toContain('&lt;append&gt;')
  expect(svg).not.toContain('<append>')
})
