import { expect, test } from 'vitest'
import { parseSamples, topText, topView } from '../../../src/cli/top.ts'

const metrics = (posts: readonly number[], active: number, replies: number) => {
  const [fast = 0, slow = 0, all = 0] = posts
  return `# HELP broadside_events Public events.
# TYPE broadside_events gauge
broadside_events 1234
broadside_build_info{version="9.8.7",node="22.1.0"} 1
broadside_thread_active_seconds_total{thread="front"} ${active}
broadside_replies_total{status="200"} 50
broadside_replies_total{status="429"} ${replies}
broadside_command_duration_seconds_bucket{operation="post",le="0.01"} ${fast}
broadside_command_duration_seconds_bucket{operation="post",le="0.5"} ${slow}
broadside_command_duration_seconds_bucket{operation="post",le="+Inf"} ${all}
broadside_command_duration_seconds_count{operation="post"} ${all}
broadside_command_duration_seconds_count{operation="vote"} 7
`
}
const look = (seconds: number, text: string) => ({ atMs: seconds * 1_000, figures: parseSamples(text) })

test('rates are the growth between two samples', () => {
  const view = topView(look(10, metrics([100, 100, 100], 5, 3)), look(20, metrics([298, 300, 300], 9, 23)))
  expect(view).toMatchObject({
    release: '9.8.7',
    events: 1_234,
    posts_per_second: 20,
    posts_p99_seconds: 0.01,
    commands_per_second: 20,
    refused_per_second: 2,
    threads: { front: 0.4 },
  })
  expect(topText(view)).toContain('20.0/s, p99 at most 10 ms')
  expect(topText(view)).toContain('front 40%')
})

test('the p99 is the bound of its bucket, and empty without a post', () => {
  const from = look(0, metrics([0, 0, 0], 0, 0))
  expect(topView(from, look(1, metrics([97, 100, 100], 0, 0))).posts_p99_seconds).toBe(0.5)
  expect(topView(from, look(1, metrics([10, 10, 100], 0, 0))).posts_p99_seconds).toBe(Number.POSITIVE_INFINITY)
  expect(topView(from, from)).not.toHaveProperty('posts_p99_seconds')
})

test('after a restart of the board no rate is negative', () => {
  const view = topView(look(0, metrics([50, 50, 50], 9, 9)), look(1, metrics([0, 0, 0], 0, 0)))
  expect([view.posts_per_second, view.refused_per_second, view.threads.front]).toEqual([0, 0, 0])
})
