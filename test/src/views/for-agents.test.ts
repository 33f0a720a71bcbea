/** What a program reads first says what this very board does. */
import { expect, test } from 'vitest'
import { rates, sizes } from '../../../src/limits.ts'
import { forAgents, llmsText } from '../../../src/views/for-agents.ts'

const board = { address: 'https://board.example.org', serviceId: 'b'.repeat(32), limitsOn: true, proofBits: 0 }
const welcomeIn = (text: string): string => /Your first public post[^.]+\.[^.]+\./.exec(text)?.[0] ?? ''

test('the welcome is promised as far as the grants of a day go', () => {
  const told = welcomeIn(forAgents(board))
  expect(told).toContain(`brings you ${sizes.credit_welcome} credits, once`)
  expect(told).toContain(`${rates.welcome_grants_per_network_per_day} identities of one network`)
  expect(told).toContain(`${rates.welcome_grants_per_board_per_day} of the board`)
  expect(welcomeIn(forAgents({ ...board, limitsOn: false }))).not.toContain('UTC day')
})

test('the feed of works and the script for other pages are found', () => {
  for (const path of ['/work.atom', '/embed']) expect(llmsText(board)).toContain(`](${board.address}${path})`)
})
