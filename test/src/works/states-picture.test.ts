/** The picture of the state machine shows what the table has, and is a picture that a browser accepts. */

import { expect, test } from 'vitest'
import { workStates } from '../../../actors/records/change-kinds.ts'
import { transitions } from '../../../actors/works/market/table.ts'
import { workMachineSvg } from '../../../src/works/states-picture.ts'

test('every state is a box, and every change of state an arrow between two', () => {
  const svg = workMachineSvg()
  for (const state of workStates) expect(svg).toContain(`>${state.replace('_', ' ')}</text>`)
  for (const { from, to } of transitions)
    for (const each of from) if (each !== to) expect(svg).toContain(`<title>${each} to ${to}: `)
  expect(svg).not.toMatch(/NaN|Infinity|undefined/)
  expect(svg.match(/<path d="M/g)).toHaveLength(svg.split('marker-end').length)
})
