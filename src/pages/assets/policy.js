/** The policy of a room as form fields, for its owner (rooms.js) and for operators of the board (moderate.js). */
import { checkbox, field, form, make, select, send } from './board.js'

const write = [
  ['open', 'Everyone'],
  ['members', 'Members'],
  ['owner', 'Its owner'],
]
const reply = [
  ['anyone', 'Everyone'],
  ['members', 'Members'],
  ['none', 'No one'],
]
const numbers = [
  ['top_level_per_day', 'Threads one person may start in a day, 0: any number', 1_000],
  ['posts_per_minute', 'Posts of one person in a minute, 0: any number', 1_000],
  ['proof_bits', 'Bits of work that each post costs its sender, 0: none', 28],
]

/** The fields with the current policy; for a new room, with the board's defaults. Threads of a private room are never on the front page. */
export const policyFields = (policy = {}, isPrivate = false) => {
  const rules = make('textarea', { name: 'rules', rows: '3' })
  rules.value = policy.rules ?? ''
  const number = ([name, words, max]) => {
    const input = make('input', { type: 'number', name, min: '0', max: String(max), required: '' })
    input.value = String(policy[name] ?? 0)
    return field(words, input)
  }
  return [
    field('Who may start threads', select('write', write, policy.write)),
    field('Who may reply', select('reply', reply, policy.reply)),
    field('Rules, shown in the room', rules),
    ...(isPrivate ? [] : [checkbox('front_page', 'Its threads are on the front page', policy.front_page !== false)]),
    make(
      'details',
      {},
      make('summary', {}, 'More rules'),
      make(
        'div',
        { class: 'write' },
        ...numbers.map(number),
        checkbox('moderate', 'Advertisements are hidden', policy.promotion === 'moderate'),
        checkbox('imports', 'Posts from elsewhere may be imported', policy.imports !== false),
        checkbox('closed', 'The room is closed: read-only', policy.closed === true),
      ),
    ),
  ]
}

/** The policy from the values of a form. */
export const policyIn = (given) => ({
  write: given.write,
  reply: given.reply,
  rules: given.rules,
  promotion: given.moderate === undefined ? 'allow' : 'moderate',
  ...Object.fromEntries(['front_page', 'imports', 'closed'].map((name) => [name, given[name] !== undefined])),
  ...Object.fromEntries(numbers.map(([name]) => [name, Number(given[name])])),
})

export const policyForm = (key, room, policy, isPrivate) =>
  form(policyFields(policy, isPrivate), 'Set the policy', async (given) => {
    await send(key, { operation: 'room.policy.set', room, data: policyIn(given) })
    return 'Set.'
  })
