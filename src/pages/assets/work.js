/** Works: requesting one on /work, and on the page of a work what the reader's key may do next: claim, submit, review, dispute. */
import {
  checkbox,
  field,
  folded,
  form,
  get,
  identityOf,
  keyFirst,
  link,
  make,
  renewList,
  send,
  showing,
} from './board.js'
import { me } from './me.js'

const place = document.getElementById('work-acts')
const reload = () => location.reload()

/** A form with one text, which stays in this browser until it is sent. */
const withText = (words, label, act) => {
  const text = make('textarea', { name: 'text', rows: '3', required: '' })
  const acting = async ({ text: given }, say) => {
    await act(given.trim(), say)
    reload()
  }
  return form([field(label, text)], words, acting, `work ${place.dataset.work} ${words}`)
}
const plainly = (words, act) =>
  form([], words, async () => {
    await act()
    reload()
  })

/** A result is a reply to the request; the submission names and pins it. If that was refused, the same text is not posted again. */
const submission = (key, { id: event_id, fence: amount, room }) => {
  let posted
  return async (text, say) => {
    if (posted?.text !== text) {
      const { event_id: target } = await send(key, { operation: 'post', room, text, reply_to: event_id }, { say })
      posted = { text, target }
    }
    await send(key, { operation: 'work.submit', event_id, amount, target: posted.target }, { say })
  }
}

/** The possible next steps, by the reader's role and the state of the work. The board decides; this only offers them. */
const offers = (key, own, work) => {
  const { id: event_id, fence: amount, state } = work
  const as = (operation, more = {}) => send(key, { operation, event_id, ...more })
  const [isRequester, isReviewer, isWorker] = [work.requester, work.reviewer, work.worker].map(
    (each) => each?.id === own,
  )
  if (state === 'open')
    return isRequester
      ? [plainly('Cancel it', () => as('work.cancel'))]
      : isReviewer
        ? []
        : [plainly('Claim it', () => as('work.claim'))]
  if (state === 'claimed' || state === 'revision')
    return isWorker
      ? [
          withText('Submit the result', 'Your result', submission(key, work)),
          plainly('Give it back', () => as('work.release', { amount })),
        ]
      : []
  if (state === 'submitted' && isReviewer)
    return [
      plainly('Accept the result', () => as('work.accept')),
      withText('Ask for changes', 'What is missing', (reason) => as('work.revise', { reason })),
      withText('Reject it', 'Why', (reason) => as('work.reject', { reason })),
    ]
  if (state === 'rejected' && isWorker)
    return [
      withText('Dispute the rejection', 'Why', (reason) => as('work.dispute', { amount, reason })),
      plainly('Concede', () => as('work.concede', { amount })),
    ]
  return []
}

const request = (key) => {
  const room = make('input', { name: 'room', required: '', value: 'lobby', maxlength: '64' })
  const title = make('input', { name: 'title', required: '', maxlength: '120' })
  const text = make('textarea', { name: 'text', rows: '4', required: '' })
  const amount = make('input', { name: 'amount', type: 'number', min: '1', value: '10', required: '' })
  const reviewer = make('input', { name: 'reviewer', placeholder: '@handle; you when empty' })
  const fields = [
    field('Title', title),
    field('What is to be done', text),
    field('Reward in credits', amount),
    field('Room', room),
    field('Who reviews the result', reviewer),
    checkbox('simulated', 'Practice: costs and pays nothing'),
  ]
  const made = form(
    fields,
    'Request this work',
    async (given, say) => {
      const named = await identityOf(given.reviewer.trim())
      const data = {
        schema: 1,
        title: given.title.trim(),
        ...(named === '' ? {} : { reviewer: named }),
        ...(given.simulated === undefined ? {} : { simulated: true }),
      }
      const fields = { room: given.room.trim(), text: given.text, amount: Number(given.amount), data }
      const { work } = await send(key, { operation: 'work.create', ...fields }, { say })
      // It is requested, whether the list can be read or not.
      await renewList('.content > .rows').catch(() => {})
      return make('span', {}, 'Requested: ', link(`/work/${work.id}`, 'see it'), '.')
    },
    'work',
  )
  return folded('Request work', made, 'work')
}

const build = async () => {
  const own = await me()
  const { work: id } = place.dataset
  if (own === undefined) {
    const words = id === undefined ? 'To request work, ' : 'To work on it or review it, '
    return place.replaceChildren(keyFirst(words))
  }
  if (id === undefined) return place.replaceChildren(request(own.key))
  const { work } = await get(`/api/work/${id}`)
  const forms = offers(own.key, own.who.id, work)
  if (forms.length > 0) place.replaceChildren(make('h2', {}, 'Your turn'), ...forms)
  return undefined
}
const show = showing(place, build)
void show()
document.addEventListener('key-changed', () => void show())
