/**
 * Draws how the credits of a work moved, on the server: requester, escrow, and destinations, each flow as thick as its amount. The same is
 * said in words, and the table of transfers is next to it.
 */
import { codes } from '../../actors/works/market/ledger.ts'
import type { Work } from '../pages/data.ts'
import { type Html, html } from '../pages/pieces/html.ts'
import { nameOf } from '../pages/pieces/person.ts'
import { whole } from '../pages/pieces/time.ts'
import type { Move } from './transfers.ts'

/** Narrow enough for its letters to be legible on a phone. */
const width = 460
const row = 56
const boxWidth = 122
const boxHeight = 40

/** Transfers of the reward out of escrow; bonds, raises and created credits are only in the table. */
const ofReward: ReadonlySet<number> = new Set([codes.reward, codes.fee, codes.share, codes.refund])

/** `to`: the full name. */
type Flow = { readonly to: string; readonly words: string; readonly amount: number; readonly isBack: boolean }

export function moneyPlot(work: Work, moves: readonly Move[]): Html {
  const put = work.reward.amount + work.reward.fee
  const flows = flowsOf(work, moves, put)
  const height = Math.max(1, flows.length) * row + 8
  const middle = height / 2
  const most = Math.max(put, 1)
  const thick = (amount: number): string => Math.max(2, (26 * amount) / most).toFixed(1)
  const place = (n: number): number => 4 + n * row + row / 2
  const box = (x: number, y: number, name: string, words: string): Html =>
    html`<rect class="box" x="${x}" y="${y - boxHeight / 2}" width="${boxWidth}" height="${boxHeight}" rx="5"/><text class="name" x="${x + boxWidth / 2}" y="${y - 2}" text-anchor="middle">${name}</text><text x="${x + boxWidth / 2}" y="${y + 13}" text-anchor="middle">${words}</text>`
  const center = (width - boxWidth) / 2
  const right = width - boxWidth
  const paths = flows.map(({ amount, isBack }, n) => {
    const [from, to] = [center + boxWidth, right]
    const bend = (from + to) / 2
    return html`<path class="flow${isBack && ' back'}" stroke-width="${thick(amount)}" d="M${from} ${middle}C${bend} ${middle} ${bend} ${place(n)} ${to} ${place(n)}"/>`
  })
  const boxes = flows.map(({ to, words }, n) => box(right, place(n), short(to), words))
  const said = saidOf(work, put, flows)
  return html`<figure><svg class="plot narrow" viewBox="0 0 ${width} ${height}" role="img" aria-label="${said}"><path class="flow" stroke-width="${thick(put)}" d="M${boxWidth} ${middle}H${center}"/>${paths}${box(0, middle, short(nameOf(work.requester)), 'requester')}${box(center, middle, 'escrow', `${whole(put)} held`)}${boxes}</svg><figcaption>${said}</figcaption></figure>`
}

/** Where escrow went or, for a work in progress, where it may go. */
function flowsOf(work: Work, moves: readonly Move[], put: number): Flow[] {
  const { worker, requester, reward } = work
  const to = new Map<string, number>()
  for (const { code, to: account, amount } of moves)
    if (ofReward.has(code)) to.set(account, (to.get(account) ?? 0) + amount)
  if (to.size === 0) {
    const name = worker === undefined ? 'nobody yet' : nameOf(worker)
    return reward.state === 'held' ? [{ to: name, words: 'if accepted', amount: put, isBack: true }] : []
  }
  const back = `user:${requester.id}`
  return [...to].map(([account, amount]) => {
    const isRequester = account === back
    const isWorker = worker !== undefined && account === `user:${worker.id}`
    const name = isRequester ? nameOf(requester) : isWorker ? nameOf(worker) : account.replace('user:', '')
    return {
      to: name,
      words: `${whole(amount)} ${isRequester ? 'back' : isWorker ? 'paid' : ''}`.trim(),
      amount,
      isBack: isRequester,
    }
  })
}

function saidOf({ requester, reward }: Work, put: number, flows: readonly Flow[]): string {
  const begin = `${nameOf(requester)} put ${whole(put)} credits into escrow (${whole(reward.amount)} reward, ${whole(reward.fee)} fee)`
  if (reward.state === 'held') return `${begin}; they are held there.`
  if (reward.state === 'released') return `${begin}; they are back.`
  return `${begin}; it went out as ${flows.map(({ to, words }) => `${words} to ${to}`).join(', ')}.`
}

function short(name: string): string {
  return name.length > 15 ? `${name.slice(0, 14)}…` : name
}
