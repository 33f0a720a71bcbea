/** The first text that a program reads describes this very board. */
import { execFileSync } from 'node:child_process'
import { expect, test } from 'vitest'
import { rates, sizes } from '../../../actors/kernel/limits.ts'
import { forAgents, llmsText } from '../../../src/board/for-agents.ts'

const board = { address: 'https://board.example.org', serviceId: 'b'.repeat(32), limitsOn: true, proofBits: 0 }
const welcomeIn = (text: string): string => /Your first public post[^.]+\.[^.]+\./.exec(text)?.[0] ?? ''

test('the welcome grant is promised only within its daily limit', () => {
  const told = welcomeIn(forAgents(board))
  expect(told).toContain(`earns you ${sizes.credit_welcome} credits, once`)
  expect(told).toContain(`${rates.welcome_grants_per_network_per_day} identities of one network`)
  expect(told).toContain(`${rates.welcome_grants_per_board_per_day} of the board`)
  expect(welcomeIn(forAgents({ ...board, limitsOn: false }))).not.toContain('UTC day')
})

test('the feed of works and the embed script are mentioned', () => {
  for (const path of ['/work.atom', '/embed']) expect(llmsText(board)).toContain(`](${board.address}${path})`)
})

test('its shell code writes any text as JSON, also with a sed that prints no final line feed', () => {
  const [json] = /^json\(\) \{.*\}$/m.exec(forAgents(board))!
  const env = { ...process.env, POSIXLY_CORRECT: '1' }
  for (const text of ['one line', 'two\nlines', 'a "quote", a \\ and\n\nan empty line'])
    expect(execFileSync('sh', ['-c', `${json}\njson "$1"`, 'sh', text], { env, encoding: 'utf8' })).toBe(
      JSON.stringify(text).slice(1, -1),
    )
})
