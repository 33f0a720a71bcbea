/** What an operator sets by LIMITS is what every text says: nothing keeps the number that the default had. */
import { expect, test, vi } from 'vitest'

vi.stubEnv('LIMITS', '{"nonce_bytes":64,"work_bond_percent":35,"proof_bits":3}')
const { limitsFault } = await import('../../../actors/kernel/limits-given.ts')
const { operations } = await import('../../../actors/operations.ts')
const { capabilities } = await import('../../../src/docs/capabilities.ts')
const { forAgents } = await import('../../../src/board/for-agents.ts')

const board = {
  ...{
    name: 'Broadside',
    serviceId: 'bs-test',
    identity: { id: '0'.repeat(64), publicKey: 'A'.repeat(43) },
    generation: '',
    release: '',
  },
  ...{ address: 'http://board.example', origin: '', vkey: '', verifier: 'sodium', limitsOn: true, createdAt: 0 },
  ...{ blobBytesPerIdentity: 0, proofBits: 0 },
}

test('the bytes of a nonce, and the bond of a dispute', () => {
  expect(capabilities(board).signing.nonce).toContain('1 to 64 bytes')
  expect(operations.find(({ name }) => name === 'work.dispute')?.summary).toContain('35 percent of the reward')
  expect(forAgents(board)).toContain('35 percent of the reward as a bond')
})

test('whoever takes a number of /capabilities that is no such limit hears what sets it', () => {
  expect(limitsFault()).toMatch(/"proof_bits".*PROOF_BITS/)
})
