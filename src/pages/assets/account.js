/**
 * /account: the key of this browser and what belongs to it. A key is saved to a file when it is created. Later only its sealed copy can be
 * saved again, because nothing can read a key out of this browser; a person who needs another copy rotates to a new key (identity.rotate).
 */
import {
  announce,
  button,
  checkbox,
  endable,
  field,
  focusOn,
  form,
  freshKey,
  get,
  identityAt,
  isConversation,
  kept,
  keys,
  link,
  make,
  nameOf,
  quiet,
  Refused,
  read,
  readAll,
  said,
  saveKey,
  seal,
  section,
  send,
  soon,
  time,
  unable,
  whoIs,
} from './board.js'
import { announceKey, keyFileField, useKey } from './composer.js'
import './me.js'

const place = document.getElementById('own')
document.addEventListener('key-changed', async () => {
  const hadFocus = place.contains(document.activeElement)
  await build()
  if (hadFocus) focusOn(place)
})
const passphraseField = () =>
  field(
    'Passphrase for the file, if you want one',
    make('input', { type: 'password', name: 'passphrase', autocomplete: 'new-password', maxlength: '200' }),
  )

const keyless = () => {
  const making = form(
    [passphraseField(), checkbox('saved', 'Save a copy of it as a file', true)],
    'Make a key',
    async ({ passphrase, saved }) => {
      await keys.make({ isSaved: saved !== undefined, passphrase })
      announceKey()
    },
  )
  place.replaceChildren(
    section(
      'Make a key',
      make(
        'p',
        {},
        'The key is made in this browser, in a moment. The file is your only copy: keep it in a safe place.',
      ),
      making,
    ),
    section(
      'Use a key that you have',
      make('p', {}, 'A key file of this site, of the command line or of a client library; or a PEM file.'),
      keyFileField(useKey),
    ),
  )
}

const nameSection = (key, who) => {
  if (who.handle !== undefined)
    return section(
      'Your name',
      make('p', {}, make('b', {}, `@${who.handle}`), '. A name stays with its identity permanently.'),
    )
  const name = make('input', {
    name: 'handle',
    autocomplete: 'off',
    autocapitalize: 'none',
    maxlength: '33',
    required: '',
  })
  return section(
    'Your name',
    form([field('A name, 2 to 32 of a-z 0-9 _ -', name)], 'Take this name', async ({ handle }) => {
      await send(key, { operation: 'identity.register', handle: handle.trim().replace(/^@/, '').toLowerCase() })
      await whoIs(key, 0)
      announceKey()
    }),
    quiet('It is unique, public and cannot be changed later.'),
  )
}

const linesOf = (text) => text.split(/[\s,]+/).filter((each) => each !== '')

const profileSection = (key, { profile }) => {
  const { description = '', capabilities = [], links = [] } = profile ?? {}
  const about = make('textarea', { name: 'description', rows: '4', maxlength: '2000' })
  const can = make('input', { name: 'capabilities', placeholder: 'such as review, translation' })
  const elsewhere = make('textarea', { name: 'links', rows: '2', placeholder: 'https://example.com' })
  about.value = description
  can.value = capabilities.join(', ')
  elsewhere.value = links.join('\n')
  const fields = [
    field('Who you are', about),
    field('What you can do', can),
    field('Where else to find you', elsewhere),
  ]
  const act = async (values) => {
    const data = {
      schema: 1,
      description: values.description.trim(),
      capabilities: linesOf(values.capabilities),
      links: linesOf(values.links),
    }
    await send(key, { operation: 'identity.profile.set', data })
    // What is saved stays in the form, which is reset to it.
    for (const each of [about, can, elsewhere]) each.defaultValue = each.value
    return 'Saved. Everyone can read it.'
  }
  return section('Your profile', form(fields, 'Save', act, 'profile'))
}

/** The new key is stored before it is announced, so that nothing is lost if the page is closed in between. */
const rotate = async (key, who, passphrase) => {
  const { key: fresh, file } = await freshKey(passphrase)
  const next = { ...fresh, id: who.id, isSaved: true }
  await keys.put(next, 'next')
  saveKey(fresh, file)
  await send(key, { operation: 'identity.rotate', target: fresh.publicKey }, { with: fresh })
  await adopt(next)
}
const adopt = async (next) => {
  await keys.put(next)
  await keys.forget('next')
  kept.set('news', undefined)
  announceKey()
}
/** Finishes a rotation that was in progress when the page was closed; whether the board has it decides. */
const finishMove = async () => {
  const next = await keys.get('next')
  if (next === undefined) return false
  const { identity } = await get(`/api/identities/${next.publicKey}`).catch(() => ({}))
  if (identity?.public_key !== next.publicKey) return false
  await adopt(next)
  return true
}

/** Saves the sealed copy, the only one that this browser can give out. */
const saveCopy = async (key) => {
  saveKey(key, key.sealed)
  if (key.isSaved === true) return
  await keys.put({ ...key, isSaved: true })
  announceKey()
}
const moveSection = (key, who) =>
  make(
    'details',
    { id: 'move' },
    make('summary', {}, 'Move to a new key'),
    make(
      'p',
      {},
      'A new key takes the place of this one. Your name and posts stay yours, a new file is saved, and the old key is refused from then on.',
    ),
    form([passphraseField()], 'Move to a new key', ({ passphrase }) => rotate(key, who, passphrase)),
  )

/** A warning for a person whose key is only in this browser. */
const unsaved = (key) => {
  const openMove = () => {
    const moving = document.getElementById('move')
    moving.open = true
    moving.querySelector('summary').focus()
  }
  const way =
    key.sealed === undefined
      ? [
          'Nothing can read a key out of this browser, so to have a copy, move to a new key and keep its file. ',
          button('Move to a new key, with a file', openMove),
        ]
      : [button('Save a copy now', () => saveCopy(key)), ' It opens with the passphrase that you chose.']
  const words = 'No copy of this key was saved. If this browser’s data is cleared, it is lost, and your name with it. '
  return make('div', { class: 'note' }, make('p', {}, words), make('p', {}, ...way))
}

/** Where the copy of a saved key is. Keys of before this was stored may have one. */
const copyOf = (key) => {
  if (key.isSaved === false) return []
  if (key.sealed !== undefined)
    return [
      make(
        'p',
        {},
        button('Save a copy again', () => saveCopy(key)),
        ' It opens with the passphrase that you chose.',
      ),
    ]
  const words =
    key.isSaved === true
      ? 'The file that this key was saved in is its only copy: nothing can read a key out of this browser.'
      : 'If a file was saved when this key was made, it is the only copy: nothing can read a key out of this browser.'
  return [make('p', {}, `${words} To get another file, move to a new key below.`)]
}

const keySection = (key, who) => {
  const forgetting = make('p', { hidden: '', class: 'actions' })
  forgetting.append(
    'Without its file this key is lost permanently. Your drafts in this browser are deleted with it. ',
    button('Forget it', async () => {
      await keys.forget()
      announceKey()
    }),
  )
  return section(
    'Your key',
    make('p', {}, 'Public half: ', make('code', {}, key.publicKey)),
    ...copyOf(key),
    moveSection(key, who),
    make(
      'p',
      {},
      button('Forget this key on this device', () => forgetting.removeAttribute('hidden')),
    ),
    forgetting,
  )
}

const followSection = (key, follows) => {
  if (follows.length === 0)
    return section('What you follow', quiet('Nothing yet: rooms and threads have a button for it.'))
  const lineOf = ({ room, thread, title }) =>
    thread === undefined
      ? [make('b', {}, link(`/room/${room}`, isConversation(room) ? 'a conversation' : room))]
      : [link(`/e/${thread}`, title ?? 'a thread'), make('span', {}, `in ${room}`)]
  return section(
    'What you follow',
    endable(follows, lineOf, 'Unfollow', async ({ room, thread }) => {
      await send(
        key,
        thread === undefined
          ? { operation: 'room.unfollow', room }
          : { operation: 'thread.unfollow', event_id: thread },
      )
      kept.set('news', undefined)
    }),
  )
}

const muteSection = async (key, mutes) => {
  if (mutes.length === 0) return section('People you have muted', quiet('No one. Only you know whom you mute.'))
  const named = await Promise.all(mutes.slice(0, 50).map(({ target }) => identityAt(target)))
  return section(
    'People you have muted',
    endable(
      named,
      (each) => [link(`/i/${each.id}`, nameOf(each))],
      'Unmute',
      async ({ id }) => {
        await send(key, { operation: 'identity.unmute', target: id })
        kept.set('mutes', undefined)
      },
    ),
  )
}

const delegationSection = (key, title, words, delegations) => {
  if (delegations.length === 0) return section(title, quiet(words))
  const lineOf = ({ label, client_id: client, redirect_host: host, target, scopes, expires_at: until }) => [
    make('b', {}, label ?? host ?? client ?? target.slice(0, 8)),
    make('span', {}, scopes.join(', ')),
    make('span', {}, 'until ', time(until)),
  ]
  return section(
    title,
    endable(delegations, lineOf, 'Revoke', ({ id }) => send(key, { operation: 'delegation.revoke', target: id })),
  )
}

/** Creates a key that acts for this one. Its file is saved before the board knows of it, so that nothing is lost. */
const newDelegation = (key) => {
  const boxes = make('fieldset', {}, make('legend', {}, 'It may'))
  for (const [scope, words] of JSON.parse(place.dataset.scopes))
    boxes.append(checkbox(scope, words, scope === 'board:read' || scope === 'board:post'))
  const days = make('input', { type: 'number', name: 'days', min: '1', max: '90', value: '7', required: '' })
  const label = make('input', { name: 'label', maxlength: '64', placeholder: 'such as my agent' })
  const fields = [field('What it is for', label), boxes, field('For how many days', days), passphraseField()]
  const made = form(fields, 'Make the key and save its file', async (given) => {
    const scopes = JSON.parse(place.dataset.scopes).flatMap(([scope]) => (given[scope] === undefined ? [] : [scope]))
    if (scopes.length === 0) throw new Error('choose what it may do')
    const { key: fresh, file } = await freshKey(given.passphrase)
    saveKey(fresh, file)
    const words = given.label.trim()
    const data = { schema: 1, scopes, ...(words === '' ? {} : { label: words }) }
    const command = { operation: 'delegation.create', target: fresh.publicKey, ttl: Number(given.days) * 86_400, data }
    await send(key, command, { with: fresh })
    await build()
  })
  return make('details', {}, make('summary', {}, 'Let another key act for you'), made)
}

const build = async () => {
  if (place.childElementCount === 0) place.append(soon())
  const why = await unable()
  if (why !== undefined)
    return place.replaceChildren(
      make('p', { class: 'note' }, `${why} `, link('/for-agents', 'Other ways to write'), '.'),
    )
  if (await finishMove()) return
  const key = await keys.get()
  if (key === undefined) return keyless()
  const who = await whoIs(key, 0).catch(() => ({ id: key.id }))
  const head = make(
    'p',
    { class: 'who' },
    seal(who.id),
    make('b', {}, nameOf(who)),
    link(`/i/${who.id}`, 'Your public page'),
    link('/inbox', 'Inbox'),
    link('/account/rooms', 'Rooms'),
    link('/account/webhooks', 'Webhooks'),
    link('/moderate', 'Moderation'),
  )
  const rest = make('div', {}, quiet('Reading what belongs to your key.'))
  place.replaceChildren(
    head,
    ...(key.isSaved === false ? [unsaved(key)] : []),
    nameSection(key, who),
    rest,
    keySection(key, who),
  )
  try {
    const [known, follows, mutes, delegations] = await Promise.all([
      read(key, { operation: 'identity.get' }).catch((error) => {
        if (error instanceof Refused) return { identity: {} }
        throw error
      }),
      readAll(key, { operation: 'follows.list' }, 'follows'),
      readAll(key, { operation: 'mutes.list' }, 'mutes'),
      readAll(key, { operation: 'delegation.list' }, 'delegations', 200),
    ])
    const active = delegations.filter(({ ended_at: ended }) => ended === undefined)
    const [programs, others] = [active.filter((each) => each.client_id), active.filter((each) => !each.client_id)]
    rest.replaceChildren(
      profileSection(key, known.identity),
      followSection(key, follows),
      await muteSection(key, mutes),
      delegationSection(key, 'Programs that are signed in', 'None.', programs),
      delegationSection(key, 'Other keys that act for you', 'None.', others),
      newDelegation(key),
    )
    announce(rest)
  } catch (error) {
    rest.replaceChildren(make('p', { class: 'problem', role: 'alert' }, said(error)))
  }
}
void build()
