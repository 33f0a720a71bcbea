/**
 * Documents: creating one in a room, and editing one on its page. If someone else edited it in the meantime, the merged text is shown. What
 * is typed stays in this browser until it is saved. Those of private rooms (`data-private`) are listed and shown here too, with their
 * versions and history, by signed reads.
 */
import {
  announce,
  button,
  documentAt,
  doing,
  field,
  focusOn,
  folded,
  form,
  get,
  kept,
  keyFirst,
  link,
  make,
  person,
  quiet,
  read,
  readAll,
  rendered,
  renewList,
  rows,
  section,
  send,
  setTitle,
  showing,
  time,
  visible,
} from './board.js'
import { me } from './me.js'
import { isAmong, joinButton, roleIn } from './standing.js'

const place = document.getElementById('document-acts')
const isPrivate = place.dataset.private !== undefined
const isHistory = location.pathname.endsWith('/history')
const asked = new URLSearchParams(location.search)
/** The version that the address names. */
const wanted = asked.has('version') ? Number(asked.get('version')) : undefined

/** The documents of a private room. */
const list = make('div', {})
const renewPrivateList = async (key, room) => {
  const docs = await readAll(key, { operation: 'docs.list', room }, 'docs')
  const lineOf = ({ id, title, updated_at: at }) => [
    make('b', { dir: 'auto' }, link(`/d/${id}`, visible(title))),
    time(at),
  ]
  list.replaceChildren(docs.length === 0 ? quiet('There are no documents here yet.') : rows(docs, lineOf, () => []))
  announce(list)
}

const create = (key, room) => {
  const title = make('input', { name: 'title', required: '', maxlength: '200' })
  const text = make('textarea', { name: 'text', rows: '10', required: '' })
  const draft = `new document ${room}`
  const made = form(
    [field('Title', title), field('Text, in Markdown', text)],
    'Create it',
    async (given, say) => {
      const data = { schema: 1, title: given.title.trim() }
      const { doc } = await send(key, { operation: 'docs.create', room, text: given.text, data }, { say })
      // It is created, whether the list can be read or not.
      await (isPrivate ? renewPrivateList(key, room) : renewList('.content > .rows')).catch(() => {})
      return make('span', {}, 'Created: ', link(`/d/${doc.id}`, 'see it'), '.')
    },
    draft,
  )
  return folded('New document', made, draft)
}

/** The newest version, unless one is named. */
const docOf = async (key, target, version) => {
  const data = { schema: 1, version }
  return (await (isPrivate ? read(key, { operation: 'docs.read', target, data }) : get(`/api/docs/${target}`))).doc
}

/** A text of a private room in the page. If the board does not render it, it is shown as written. */
const articleOf = async (given) =>
  make(
    'article',
    {},
    ...(await rendered(given).catch(() => [make('p', { class: 'text', dir: 'auto' }, visible(given.text))])),
  )

/** Shows what was read with the key, where a refusal was. */
const present = (title, head, ...parts) => {
  setTitle(title)
  document.querySelector('.head').replaceChildren(...head)
  // The place itself stays, and with it the focus.
  for (const each of [...place.parentNode.children]) if (each !== place) each.remove()
  place.before(...parts)
  announce(place.parentNode)
}

/** Whether the version that is shown has been replaced. */
let isOld = false

/** Shows a version of a document of a private room. */
const showPrivate = async (version) => {
  const { key } = await me()
  const doc = await docOf(key, place.dataset.document, version)
  const { id, room, owner, text, author, version: number, versions, written_at: at } = doc
  const { closed } = (await read(key, { operation: 'room.get', room })).room
  const article = await articleOf({ text, format: 'markdown' })
  Object.assign(place.dataset, { room, owner, ...(closed ? { closed } : {}) })
  isOld = number < versions
  const title = visible(doc.title)
  const newest = link(`/d/${id}`, `The newest is ${versions}.`)
  const head = [
    make('p', { class: 'crumbs' }, link(`/room/${room}`, room), ' / document'),
    make('h1', { dir: 'auto' }, title),
    ...(isOld ? [make('p', { class: 'note' }, `This is version ${number}. `, newest)] : []),
  ]
  const history = link(`/d/${id}/history`, 'what each version changed')
  present(
    title,
    head,
    article,
    make('p', { class: 'line' }, `version ${number}, by`, person(author), time(at), history),
  )
}

/** Shows what a version of a document of a private room changed, beside the list of its versions. */
const showHistory = async (key, target) => {
  const cursor = asked.get('cursor') ?? ''
  const { doc, versions, next_cursor: next } = await read(key, { operation: 'docs.history', target, limit: 50, cursor })
  const number = wanted ?? doc.versions
  const { text, author, written_at: at } = await docOf(key, target, number)
  const given = number > 1 ? { text, before: (await docOf(key, target, number - 1)).text } : { text, format: 'text' }
  const article = await articleOf(given)
  const title = visible(doc.title)
  const count = `${doc.versions} ${doc.versions === 1 ? 'version' : 'versions'}`
  const crumbs = make('p', { class: 'crumbs' }, link(`/d/${target}`, make('bdi', {}, title)))
  const lineOf = ({ version, author: by, written_at: then }) => {
    const way = make('b', {}, link(`?version=${version}`, `Version ${version}`))
    if (version === number) way.firstChild.setAttribute('aria-current', 'true')
    return [way, person(by), time(then)]
  }
  const older = make('p', { class: 'pager' }, link(`?version=${number}&cursor=${next}`, 'Older →'))
  const list = section(
    'Versions',
    rows(versions, lineOf, () => []),
    ...(next === undefined ? [] : [older]),
  )
  const whole = link(`/d/${target}?version=${number}`, 'read it in full')
  present(
    `History of ${title}`,
    [crumbs, make('h1', {}, count)],
    make('h2', {}, `What version ${number} changed`),
    make('p', { class: 'line' }, person(author), time(at), whole),
    ...(number > 1 ? [] : [quiet('This is the first version.')]),
    article,
    list,
  )
}

/** Shows the newest version, and the facts about it. */
const renew = async () => {
  if (isPrivate) return showPrivate()
  const fresh = await documentAt(location.pathname)
  for (const name of ['article', 'aside'])
    document.querySelector(name).replaceWith(document.importNode(fresh.querySelector(name), true))
  announce(document.querySelector('aside'))
}

const draftOf = (target) => `draft document ${target}`

/** The version that the edit started from is sent along, also with a draft, so that the board can merge it with newer edits. */
const edit = async (key, target) => {
  const doc = await docOf(key, target)
  const unsaved = kept.get(draftOf(target))
  let base = unsaved?.base ?? doc.version
  const text = make('textarea', { name: 'text', rows: '18', required: '' })
  text.value = unsaved?.text ?? doc.text
  const keep = () => kept.set(draftOf(target), { base, text: text.value })
  text.addEventListener('input', keep)
  const notice = make('div', {})
  if (unsaved !== null) notice.append(quiet('These are your unsaved changes. Saving merges them with newer versions.'))
  const history = (words) => link(`/d/${target}/history`, words)
  /** Others changed the same lines. From now on the edit is one of their version, once both texts were put together. */
  const takeUp = async ({ version, text: newest }) => {
    base = version
    keep()
    const theirs = make('pre', { tabindex: '0' }, make('code', {}, visible(newest)))
    notice.replaceChildren(
      make(
        'div',
        { class: 'note' },
        make(
          'p',
          {},
          `Others changed the same lines. The document above is now their version ${version}: `,
          history('see what changed'),
          '.',
        ),
        make('details', {}, make('summary', {}, `The text of version ${version}, to copy from`), theirs),
      ),
    )
    await renew()
    return `Not saved yet: put what you want of version ${version} into your text, then save again.`
  }
  const write = async (given, say) => {
    const data = { schema: 1, base_version: base }
    const { doc: written } = await send(key, { operation: 'docs.write', target, text: given.text, data }, { say })
    const isMerged = written.text !== undefined
    const isTyping = text.value !== given.text
    // What was typed meanwhile belongs to the text that was sent, which a merge has changed.
    if (!(isMerged && isTyping)) base = written.version
    if (isTyping) keep()
    else {
      text.value = written.text ?? given.text
      kept.set(draftOf(target))
    }
    notice.replaceChildren()
    // It is saved, whether the page can show it or not.
    await renew().catch(() => {})
    const see = history(`see what version ${written.version} changed`)
    const rest = isTyping ? '. What you typed since then is not saved yet.' : '.'
    if (!isMerged) return make('span', {}, 'Saved: ', see, rest)
    return make('span', {}, 'Someone wrote meanwhile. Both texts were merged, as shown above: ', see, rest)
  }
  const made = form([field('Text, in Markdown', text)], 'Save', (given, say) =>
    write(given, say).catch((error) => {
      if (error.code !== 'conflict' || error.details === undefined) throw error
      return takeUp(error.details)
    }),
  )
  const leave = async () => {
    kept.set(draftOf(target))
    await show()
    const opener = place.querySelector('button')
    if (opener === null) focusOn(place)
    else opener.focus()
  }
  made.querySelector('.actions').append(button('Cancel', leave, 'plain'))
  // Tabs that edit the same document have one text between them, until it is saved or discarded in one of them.
  addEventListener('storage', ({ key: name, newValue }) => {
    if (name !== draftOf(target) || !made.isConnected) return
    if (newValue === null) void renew().then(show)
    else ({ base, text: text.value } = JSON.parse(newValue))
  })
  place.replaceChildren(notice, made)
  return text
}

const opening = (key, target) => doing(['Edit this document', () => edit(key, target).then((text) => text.focus())])

const deletion = (key, target) => {
  const reason = make('input', { name: 'reason', maxlength: '200', autocomplete: 'off' })
  const made = form([field('Reason, public', reason)], 'Delete it', async (given) => {
    await send(key, { operation: 'docs.delete', target, reason: given.reason.trim() })
    kept.set(draftOf(target))
    const text = document.querySelector('article')
    text.replaceChildren(quiet('This document is deleted.'))
    place.replaceChildren()
    focusOn(text)
  })
  const words = 'All its versions are deleted, for everyone. This cannot be undone.'
  return make('details', {}, make('summary', {}, 'Delete this document'), make('p', {}, words), made)
}

/** For a reader who may not write the document: who may, and how to become one of them. */
const notTheirs = (room) =>
  room === undefined
    ? [quiet('Only its owner writes this document.')]
    : [quiet(`Only its owner and the members of ${room} write this document.`), joinButton(room)]

/** For a reader who may not create a document in the room, who may. How to join is said where threads are started. */
const creating = async (key, room, only) =>
  only === undefined || isAmong(only, await roleIn(room))
    ? create(key, room)
    : quiet(`Only ${only === 'owner' ? 'the owner of this room creates' : 'members create'} documents here.`)

/** Shows what is private to those whose key is here, and to no one after them. */
const open = async (own) => {
  const { document: target, room } = place.dataset
  if (own !== undefined) {
    if (target === undefined) return renewPrivateList(own.key, room)
    return isHistory ? showHistory(own.key, target) : showPrivate(wanted)
  }
  list.replaceChildren()
  if (document.querySelector('article') !== null) location.reload()
}

const build = async () => {
  const own = await me()
  if (isPrivate) await open(own)
  const { document: target, room, owner, only, closed } = place.dataset
  const isOpen = closed === undefined
  if (own === undefined) {
    const what = isPrivate ? 'This document opens with the key of a member of its room: ' : 'To write documents, '
    const isSaid = isOpen && !(isPrivate && target === undefined)
    return place.replaceChildren(...(isSaid ? [keyFirst(what)] : []))
  }
  if (target === undefined) {
    const creation = await creating(own.key, room, only)
    return place.replaceChildren(
      ...(isPrivate ? [make('details', {}, make('summary', {}, 'Documents'), list, creation)] : [creation]),
    )
  }
  // Only the newest version is written.
  if (isHistory || isOld) return place.replaceChildren()
  if (kept.get(draftOf(target)) !== null) return void (await edit(own.key, target))
  const role = room === undefined ? 'none' : await roleIn(room)
  const isOwn = own.who.id === owner
  if (!isOwn && role === 'none') return place.replaceChildren(...(isOpen ? notTheirs(room) : []))
  const mayDelete = isOwn || role === 'owner' || role === 'moderator'
  return place.replaceChildren(
    ...(isOpen ? [opening(own.key, target)] : []),
    ...(mayDelete ? [deletion(own.key, target)] : []),
  )
}
const show = showing(place, build)
void show()
// A page that was left may have missed what another tab did to the draft.
addEventListener('pageshow', ({ persisted: isAgain }) => isAgain && void show())
for (const change of ['key-changed', 'role-changed']) document.addEventListener(change, () => void show())
