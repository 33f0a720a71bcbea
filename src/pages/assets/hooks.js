/** /account/webhooks: webhooks of this board, and receive URLs to which other services deliver. */
import {
  announce,
  checkbox,
  doing,
  field,
  focusOn,
  form,
  input,
  keyFirst,
  make,
  quiet,
  read,
  readAll,
  said,
  section,
  send,
  showing,
  time,
  visible,
} from './board.js'
import { me } from './me.js'

const place = document.getElementById('hooks')
/** Kinds of events by name, as src/people/own-pages.ts writes them. */
const kinds = JSON.parse(place.dataset.kinds)
const itemsShown = 20
const bodyShown = 2_000

/** A secret, which is shown only once. */
const once = (words, secret) =>
  make('span', {}, `${words}, shown only now: `, make('code', {}, secret ?? 'it was shown before'), '.')
const details = (words, ...inside) => make('details', {}, make('summary', {}, words), ...inside)
/** A list that is loaded when it is opened. */
const later = (words, find) => {
  const shown = make('div', {})
  const made = details(words, shown)
  made.addEventListener('toggle', async () => {
    if (!made.open) return
    try {
      shown.replaceChildren(await find())
      announce(shown)
    } catch (error) {
      shown.replaceChildren(quiet(said(error)))
    }
  })
  return made
}
const listOf = (items, none) => (items.length === 0 ? quiet(none) : make('ul', { class: 'rows' }, ...items))

/** Webhooks: deliveries from this board. */

const deliveryLine = ({ kind, state, attempts, attempted_at: at, status, error }) =>
  make(
    'li',
    {},
    make(
      'div',
      { class: 'line' },
      make('span', {}, kinds[kind] ?? kind),
      make('span', { class: state === 'delivered' ? 'tag good' : 'tag warm' }, state.replace('_', ' ')),
      make('span', {}, error ?? (status === undefined ? '' : `status ${status}`)),
      ...(attempts > 1 ? [make('span', {}, `${attempts} attempts`)] : []),
      time(at),
    ),
  )

const hookItem = (key, { id, url, kinds: wanted, room, delivery }) => {
  const { active, last_error: wrong, last_delivery_at: last, waiting } = delivery
  const state = [
    make('span', { class: active ? 'tag good' : 'tag bad' }, active ? 'active' : 'suspended'),
    ...(waiting > 0 ? [make('span', {}, `${waiting} waiting`)] : []),
    ...(wrong === undefined ? [] : [make('span', {}, `newest attempt: ${wrong.replaceAll('_', ' ')}`)]),
    ...(last === undefined ? [] : [make('span', {}, 'delivered ', time(last))]),
  ]
  const resume = ['Resume', () => send(key, { operation: 'webhook.redeliver', target: id }).then(build)]
  return [
    make('code', {}, visible(url)),
    make(
      'div',
      { class: 'line' },
      wanted.map((kind) => kinds[kind]).join(', '),
      ...(room === undefined ? [] : [` in ${room}`]),
    ),
    make('div', { class: 'line' }, ...state),
    doing(
      ...(active ? [] : [resume]),
      ['New secret', () => rotateHook(key, id)],
      ['Delete', () => send(key, { operation: 'webhook.delete', target: id }).then(build)],
    ),
    later('Deliveries', async () => {
      const { deliveries } = await read(key, { operation: 'webhook.deliveries', target: id, limit: 20 })
      return listOf(deliveries.map(deliveryLine), 'Nothing was delivered yet.')
    }),
  ]
}

const rotateHook = async (key, target) => {
  const { webhook } = await send(key, { operation: 'webhook.rotate', target })
  return `Its new secret, shown only now: ${webhook.secret}. For 24 hours, deliveries are signed with the previous one too.`
}

const newHook = (key) => {
  const url = input('url', { type: 'url', required: '', placeholder: 'https://example.com/hook', maxlength: '2048' })
  const boxes = make('fieldset', {}, make('legend', {}, 'Events'))
  for (const [kind, words] of Object.entries(kinds)) boxes.append(checkbox(kind, words))
  const fields = [
    field('Address', url),
    boxes,
    field('Room, for its posts or documents', input('room', { maxlength: '64' })),
  ]
  return form(fields, 'Create the webhook', async (given) => {
    const room = given.room.trim()
    const data = {
      schema: 1,
      url: given.url.trim(),
      kinds: Object.keys(kinds).filter((kind) => given[kind] !== undefined),
      ...(room === '' ? {} : { room }),
    }
    const { webhook } = await send(key, { operation: 'webhook.create', data })
    await renew()
    return once('Deliveries are signed with this secret', webhook.secret)
  })
}

/** Receive URLs: deliveries to this board. */

const itemLine = ({ received_at: at, content_type: type, bytes, body, body_encoding: encoding, verified }) =>
  make(
    'li',
    {},
    make(
      'div',
      { class: 'line' },
      time(at),
      make('span', {}, visible(type)),
      make('span', {}, `${bytes} bytes`),
      ...(verified ? [make('span', { class: 'tag good' }, 'signature verified')] : []),
    ),
    make(
      'pre',
      { tabindex: '0' },
      make('code', {}, encoding === 'text' ? visible(body.slice(0, bodyShown)) : `${body.slice(0, 200)} (base64url)`),
    ),
  )

const receiverItem = (key, { id, label, room, post, signed, items, delegation_ended: dead, deleted_at: ended }) => {
  const acts = [
    ['New address', () => rotate(key, id)],
    ['Delete', () => send(key, { operation: 'receiver.delete', target: id }).then(build)],
  ]
  const about = [
    `${items} received`,
    ...(post ? [`posted to ${room}`] : []),
    ...(signed ? ['must be signed'] : []),
    ...(ended === undefined ? [] : ['deleted']),
    ...(dead && ended === undefined ? ['closed, because its delegation has ended: take a new address'] : []),
  ]
  return [
    make('b', {}, visible(label ?? id.slice(0, 8))),
    make('div', { class: 'line' }, about.join(', ')),
    ...(ended === undefined ? [doing(...acts)] : []),
    later('What was received', async () => {
      const data = { schema: 1, after: Math.max(0, items - itemsShown) }
      const { items: found } = await read(key, { operation: 'receiver.items', target: id, limit: itemsShown, data })
      return listOf(found.reverse().map(itemLine), 'Nothing was received yet.')
    }),
  ]
}
const rotate = async (key, target) => {
  const { receiver } = await send(key, { operation: 'receiver.rotate', target })
  return `Its new address, shown only now: ${location.origin}${receiver.url}`
}

const newReceiver = (key) => {
  const fields = [
    field('What it is for', input('label', { maxlength: '64', placeholder: 'such as builds' })),
    field('Post what arrives to this room, if you want that', input('room', { maxlength: '64' })),
    details(
      'More',
      field('Secret that senders sign with', input('secret', { maxlength: '256' })),
      field('Header that tells repeats apart', input('header', { placeholder: 'such as webhook-id', maxlength: '64' })),
      field('Only from these addresses or networks', input('from', { placeholder: 'such as 192.0.2.0/24' })),
    ),
  ]
  return form(fields, 'Create an address', async (given) => {
    const [label, room, secret, header] = ['label', 'room', 'secret', 'header'].map((name) => given[name].trim())
    const from = given.from.split(/[\s,]+/).filter((each) => each !== '')
    const data = {
      schema: 1,
      ...(label === '' ? {} : { label }),
      ...(header === '' ? {} : { dedupe_header: header }),
      ...(secret === '' ? {} : { hmac_secret: secret }),
      ...(from.length === 0 ? {} : { allow_from: from }),
      ...(room === '' ? {} : { post: true }),
    }
    const { receiver } = await send(key, { operation: 'receiver.create', room, data })
    await renew()
    return once('Its address', receiver.url === undefined ? undefined : location.origin + receiver.url)
  })
}

/** Rebuilds the lists; the forms keep their contents. */
const lists = { hooks: make('div', {}), receivers: make('div', {}) }
const build = async () => {
  const { key } = await me()
  const [hooks, receivers] = await Promise.all([
    readAll(key, { operation: 'webhook.list' }, 'webhooks', 200),
    readAll(key, { operation: 'receiver.list' }, 'receivers', 200),
  ])
  const [left] = Object.values(lists).filter((list) => list.contains(document.activeElement))
  lists.hooks.replaceChildren(
    listOf(
      hooks.map((each) => make('li', {}, ...hookItem(key, each))),
      'None yet.',
    ),
  )
  lists.receivers.replaceChildren(
    listOf(
      receivers.map((each) => make('li', {}, ...receiverItem(key, each))),
      'None yet.',
    ),
  )
  announce(place)
  if (left !== undefined) focusOn(left)
}

/** The same after a secret was made, which is shown only now, whether the lists can be read or not. */
const renew = () => build().catch(() => {})

const begin = async () => {
  const own = await me()
  if (own === undefined) return place.replaceChildren(keyFirst('To have webhooks, '))
  place.replaceChildren(
    section(
      'Outgoing webhooks',
      quiet(
        'The board POSTs events to an address of yours, signed (Standard Webhooks). It first asks that address whether it wants them.',
      ),
      lists.hooks,
      details('New webhook', newHook(own.key)),
    ),
    section(
      'Receive URLs',
      quiet('What another service sends to such a URL is stored for you, and posted to a room if you want that.'),
      lists.receivers,
      details('New receive URL', newReceiver(own.key)),
    ),
  )
  await build()
}
const show = showing(place, begin)
void show()
document.addEventListener('key-changed', () => void show())
