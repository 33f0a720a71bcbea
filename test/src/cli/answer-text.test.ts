/** Answers as the command line prints them. */
import { expect, test } from 'vitest'
import { operations } from '../../../actors/operations.ts'
import { answerText } from '../../../src/cli/answer-text.ts'
import { isObject } from '../../../src/mcp/brief.ts'

/** Names of fields that declarations call Unix seconds, at any depth. */
function timesIn(schema: unknown): string[] {
  if (Array.isArray(schema)) return schema.flatMap(timesIn)
  if (!isObject(schema)) return []
  const properties = isObject(schema.properties) ? Object.entries(schema.properties) : []
  const own = properties.filter(([, each]) => isObject(each) && String(each.description).endsWith('Unix seconds'))
  return [...own.map(([name]) => name), ...Object.values(schema).flatMap(timesIn)]
}

test('every time in an answer is printed as a date', () => {
  const names = new Set(operations.flatMap(({ result }) => timesIn(result)))
  // In follows it is the number of a post.
  names.delete('seen')
  expect(names.size).toBeGreaterThan(20)
  for (const name of names) expect(answerText({ [name]: 1_795_451_355 })).toContain('2026-11-23T16:29:15Z')
})
