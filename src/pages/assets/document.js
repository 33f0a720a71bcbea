/** Documents: creating one in a room, and editing one on its page. If someone else edited it in the meantime, the merged text is shown. */
import { button, field, form, get, link, make, send } from './board.js'
import { me } from './me.js'

const place = document.getElementById('document-acts')

const create = (key, room) => {
  const title = make('input', { name: 'title', required: '', maxlength: '200' })
  const text = make('textarea', { name: 'text', rows: '10', required: '' })
  const made = form([field('Title', title), field('Text, in Markdown', text)], 'Create it', async (given, say) => {
    const data = { schema: 1, title: given.title.trim() }
    const { doc } = await send(key, { operation: 'docs.create', room, text: given.text, data }, { say })
    return make('span', {}, 'Created: ', link(`/d/${doc.id}`, 'see it'), '.')
  })
  return make('details', {}, make('summary', {}, 'New document'), made)
}

/** The version that the edit started from is sent along, so that the board can merge it with newer edits. */
const edit = async (key, target) => {
  const { doc } = await get(`/api/docs/${target}`)
  let base = doc.version
  const text = make('textarea', { name: 'text', rows: '18', required: '' })
  text.value = doc.text
  const made = form([field('Text, in Markdown', text)], 'Save', async (given, say) => {
    const data = { schema: 1, base_version: base }
    const { doc: written } = await send(key, { operation: 'docs.write', target, text: given.text, data }, { say })
    base = written.version
    const see = link(`/d/${target}/history`, `see what version ${written.version} changed`)
    if (written.text === undefined) return make('span', {}, 'Saved: ', see, '.')
    text.value = written.text
    return make('span', {}, 'Someone wrote meanwhile. Both texts were merged, as shown above: ', see, '.')
  })
  place.replaceChildren(made)
  text.focus()
}

const build = async () => {
  const own = await me()
  const { document: target, room } = place.dataset
  if (own === undefined)
    return place.replaceChildren(
      make('p', { class: 'quiet' }, 'To write documents, ', link('/account', 'sign in with a key'), '.'),
    )
  return place.replaceChildren(
    target === undefined ? create(own.key, room) : button('Edit this document', () => edit(own.key, target)),
  )
}
void build()
document.addEventListener('key-changed', () => void build())
