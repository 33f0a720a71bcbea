/**
 * Draws the state machine of works: the states, and what leads from one to the next. It is generated from the table that the board decides
 * by (actors/works/market/table.ts), so the two always agree.
 */

import type { WorkState } from '../../actors/records/change-kinds.ts'
import { type Transition, transitions } from '../../actors/works/market/table.ts'

type Point = readonly [x: number, y: number]

/** The center of each state's box. */
const places: Readonly<Record<WorkState, Point>> = {
  open: [110, 60],
  claimed: [330, 60],
  submitted: [550, 60],
  accepted: [780, 60],
  revision: [660, 170],
  recovery_required: [415, 145],
  rejected: [550, 280],
  disputed: [780, 280],
  split: [780, 390],
  refunded: [550, 390],
  expired: [330, 390],
  cancelled: [110, 390],
}
const width = 890
const height = 430
const boxWidth = 136
const boxHeight = 34
const final: ReadonlySet<WorkState> = new Set(['accepted', 'refunded', 'split', 'cancelled', 'expired'])

/** What triggers a transition, in a caller's terms. */
function causeOf({ on, due }: Transition): string {
  if (on === 'timeout') return `${due} runs out`
  return on === 'room' ? 'the request is taken away' : on
}

/** An SVG of the machine: one arrow for each pair of states, labeled with everything that leads along it. */
export function workMachineSvg(): string {
  const causes = new Map<string, Set<string>>()
  for (const row of transitions)
    for (const from of row.from) {
      if (from === row.to) continue
      const key = `${from} ${row.to}`
      causes.set(key, (causes.get(key) ?? new Set()).add(causeOf(row)))
    }
  const arrows = [...causes].map(([key, said]) => {
    const [from, to] = key.split(' ') as [WorkState, WorkState]
    return arrow(from, to, [...said].join(', '))
  })
  const boxes = Object.entries(places).map(([state, place]) => box(state as WorkState, place))
  const rows = transitions.map((row) => `${row.from.join(' or ') || 'nothing'} to ${row.to}: ${causeOf(row)}`)
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="100%" role="img" aria-labelledby="work-machine-title work-machine-text">`,
    '<title id="work-machine-title">States of a work</title>',
    `<desc id="work-machine-text">${[...new Set(rows)].join('. ')}.</desc>`,
    '<defs><marker id="work-machine-head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0 8 4 0 8z" fill="currentColor"/></marker></defs>',
    ...arrows,
    ...boxes,
    '</svg>',
  ].join('\n')
}

function box(state: WorkState, [x, y]: Point): string {
  const isFinal = final.has(state)
  const shape = `x="${x - boxWidth / 2}" y="${y - boxHeight / 2}" width="${boxWidth}" height="${boxHeight}" rx="${isFinal ? 17 : 5}"`
  return `<g><rect ${shape} fill="none" stroke="currentColor" stroke-width="${isFinal ? 2.5 : 1.25}"/><text x="${x}" y="${y + 5}" text-anchor="middle" font-size="14" fill="currentColor">${state.replace('_', ' ')}</text></g>`
}

function arrow(from: WorkState, to: WorkState, said: string): string {
  const [start, end] = [edge(places[from], places[to]), edge(places[to], places[from])]
  // Curved to one side, so that the two directions are separate lines.
  const [dx, dy] = [end[0] - start[0], end[1] - start[1]]
  const length = Math.hypot(dx, dy) || 1
  const bend = length > 260 ? 34 : 14
  const middle: Point = [
    round((start[0] + end[0]) / 2 - (dy / length) * bend),
    round((start[1] + end[1]) / 2 + (dx / length) * bend),
  ]
  const path = `M${start[0]} ${start[1]}Q${middle[0]} ${middle[1]} ${end[0]} ${end[1]}`
  return `<path d="${path}" fill="none" stroke="currentColor" stroke-opacity=".55" marker-end="url(#work-machine-head)"><title>${from} to ${to}: ${said}</title></path>`
}

/** Where the line between the centers of two boxes leaves the first box. */
function edge([x, y]: Point, [toX, toY]: Point): Point {
  const [dx, dy] = [toX - x, toY - y]
  const scale = Math.min(boxWidth / 2 / Math.abs(dx || 1e-9), boxHeight / 2 / Math.abs(dy || 1e-9))
  return [round(x + dx * scale), round(y + dy * scale)]
}

function round(value: number): number {
  return Math.round(value * 10) / 10
}
