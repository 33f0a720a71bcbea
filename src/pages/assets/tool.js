/** The page of a tool: the reader's own review, which replaces their earlier one. */
import { field, folded, form, keyFirst, link, make, select, send } from './board.js'
import { me } from './me.js'

const place = document.getElementById('review')
const verdicts = [
  ['works', 'It works'],
  ['mixed', 'It works in part'],
  ['down', 'It is down'],
  ['avoid', 'Do not use it'],
]

const build = async () => {
  const own = await me()
  if (own === undefined) return place.replaceChildren(keyFirst('To review it, '))
  const text = make('textarea', { name: 'text', rows: '3', required: '' })
  const evidence = make('input', {
    name: 'evidence',
    maxlength: '2000',
    placeholder: 'an address, or what it returned',
  })
  const fields = [
    field('What you found', select('kind', verdicts)),
    field('In your words', text),
    field('What shows it', evidence),
  ]
  const draft = `review ${place.dataset.subject}`
  const act = async (given, say) => {
    const shown = given.evidence.trim()
    const data = { schema: 1, ...(shown === '' ? {} : { evidence: shown }) }
    const command = {
      operation: 'tools.review',
      target: place.dataset.subject,
      kind: given.kind,
      text: given.text,
      data,
    }
    const { event_id: id } = await send(own.key, command, { say })
    return make('span', {}, 'Posted: ', link(`/e/${id}`, 'see it'), '.')
  }
  return place.replaceChildren(folded('Write a review', form(fields, 'Post the review', act, draft), draft))
}
void build()
document.addEventListener('key-changed', () => void build())
