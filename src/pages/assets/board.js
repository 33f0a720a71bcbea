/**
 * Shared by all page scripts: elements, the key of this browser, signing, and sending until the outcome is known.
 *
 * The key is Ed25519 (WebCrypto), stored in IndexedDB (database `broadside`, store `keys`, entry `own`) as a non-extractable CryptoKey. It
 * is saved to a file when it is created. A copy sealed with a passphrase also stays in the database, so that it can be saved again.
 * `broadside --key FILE` and the client libraries accept these files (version 1 plain, version 2 sealed).
 *
 * Every page contains what signing needs, the service id and the field order, in the link to /account (src/pages/layout.ts).
 */

export const encoder = new TextEncoder()

/** @param {string} name @param {Record<string, string>} attributes @param {...(Node | string)} inside */
export const make = (name, attributes = {}, ...inside) => {
  const made = document.createElement(name)
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value)
  made.append(...inside)
  return made
}
export const setDisabled = (control, isDisabled) => {
  if (isDisabled) control.setAttribute('aria-disabled', 'true')
  else control.removeAttribute('aria-disabled')
}
export const isDisabled = (control) => control.getAttribute('aria-disabled') === 'true'
/** Performs the action of a control, once at a time. The control keeps the focus, which `disabled` would take from it. */
export const perform = async (control, act) => {
  if (isDisabled(control)) return
  setDisabled(control, true)
  try {
    await act()
  } finally {
    setDisabled(control, false)
  }
}
/** Moves the focus to an element that is not a control, when the one that had it is gone. */
export const focusOn = (element) => {
  element.tabIndex = -1
  element.focus({ preventScroll: true })
}
/** @param {string} words @param {() => unknown} act */
export const button = (words, act, className = '') => {
  const made = make('button', { type: 'button', ...(className === '' ? {} : { class: className }) }, words)
  made.addEventListener('click', () => perform(made, act))
  return made
}
/** Whether a moderator or operator hid a post, whose text may come back. */
export const isByModerator = (event) => event?.hidden_by === 'room' || event?.hidden_by === 'operator'
export const link = (href, words, className = '') =>
  make('a', className === '' ? { href } : { href, class: className }, words)
/** A field with its label above it. */
export const field = (words, input) => make('label', { class: 'field' }, make('span', {}, words), input)

/** A field for a line that the browser does not complete. */
export const input = (name, more = {}) => make('input', { name, autocomplete: 'off', ...more })

/** What a person without a key needs first. @param {string} words what for */
export const keyFirst = (words) => quiet(words, link('/account', 'sign in with a key'), '.')

export const section = (title, ...inside) => make('section', {}, make('h2', {}, title), ...inside)
export const quiet = (...words) => make('p', { class: 'quiet' }, ...words)

/** A checkbox with its label after it. */
export const checkbox = (name, words, isOn = false) => {
  const box = make('input', { type: 'checkbox', name, ...(isOn ? { checked: '' } : {}) })
  return make('label', { class: 'check' }, box, ` ${words}`)
}
/** A selection of one option. @param {[value: string, words: string][]} options */
export const select = (name, options, chosen = options[0][0]) => {
  const made = make('select', { name }, ...options.map(([value, words]) => make('option', { value }, words)))
  made.value = chosen
  return made
}

/** @param {Uint8Array} bytes */
export const base64url = (bytes) => {
  let text = ''
  for (let at = 0; at < bytes.length; at += 32_768) text += String.fromCharCode(...bytes.subarray(at, at + 32_768))
  return btoa(text).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')
}
/** @param {string} text */
export const fromBase64url = (text) =>
  Uint8Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), (char) => char.charCodeAt(0))
/** @param {Uint8Array} bytes */
export const sha256 = async (bytes) =>
  Array.from(new Uint8Array(await crypto.subtle.digest('SHA-256', bytes)), (byte) =>
    byte.toString(16).padStart(2, '0'),
  ).join('')

/** Escapes characters that could hide or reorder text as code points. @param {string} text */
export const visible = (text) =>
  text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu, (char) =>
    '\n\t\u200d\u200c'.includes(char) ? char : `U+${char.codePointAt(0).toString(16).toUpperCase().padStart(4, '0')}`,
  )

/** The beginning of a text, on one line. */
export const beginning = (text = '') => {
  const line = visible(text.slice(0, 400).replace(/\s+/gu, ' ').trim())
  return line.length <= 160 ? line : `${line.slice(0, 159)}…`
}

const svgSpace = 'http://www.w3.org/2000/svg'
/** The same cells as in pieces/person.ts. */
export const seal = (id) => {
  const svg = document.createElementNS(svgSpace, 'svg')
  svg.setAttribute('class', `seal hue${Number.parseInt(id.slice(5, 6), 16) || 0}`)
  svg.setAttribute('viewBox', '-1 -1 7 7')
  svg.setAttribute('aria-hidden', 'true')
  svg.setAttribute('focusable', 'false')
  const bits = Number.parseInt(id.slice(0, 5), 16)
  let path = ''
  for (let cell = 0; cell < 15; cell++) {
    if (((bits >> cell) & 1) === 0) continue
    const [x, y] = [Math.floor(cell / 5), cell % 5]
    path += `M${x} ${y}h1v1h-1z${x < 2 ? `M${4 - x} ${y}h1v1h-1z` : ''}`
  }
  const cells = document.createElementNS(svgSpace, 'path')
  cells.setAttribute('d', path || 'M2 2h1v1h-1z')
  svg.append(cells)
  return svg
}

export const nameOf = ({ id, handle }) => (handle === undefined ? id.slice(0, 8) : `@${handle}`)
/** The actor, rendered as in pieces/person.ts. */
export const person = ({ id, handle }) =>
  make(
    'a',
    { class: 'person', href: `/i/${id}`, title: `identity ${id}` },
    seal(id),
    make(
      'span',
      {},
      handle === undefined ? make('span', { class: 'key' }, id.slice(0, 8)) : make('b', {}, `@${handle}`),
    ),
  )
export const time = (seconds) => {
  const at = new Date(seconds * 1000)
  return make('time', { datetime: at.toISOString().replace('.000Z', 'Z') }, at.toLocaleString())
}
/** Names the page, which was another one until its key was found. */
export const setTitle = (words) => {
  document.title = `${words} · ${document.querySelector('.wordmark').textContent}`
}
/** Announces a new part of the page: page.js localizes its times, posts.js adds buttons to its posts. */
export const announce = (element) => element.dispatchEvent(new Event('post-added', { bubbles: true }))

/** What the board does not have, and will not have later. */
export class Missing extends Error {}

/** Loads a separate document, in which nothing runs. Text is never converted to markup here, because Trusted Types would refuse it. */
export const documentAt = (path, body) =>
  new Promise((done, failed) => {
    const asked = new XMLHttpRequest()
    asked.open(body === undefined ? 'GET' : 'POST', path)
    asked.responseType = 'document'
    if (body !== undefined) asked.setRequestHeader('content-type', 'application/json')
    asked.onload = () => {
      const { status } = asked
      const Problem = status >= 400 && status < 500 && status !== 429 ? Missing : Error
      if (status === 200) done(asked.response)
      else failed(new Problem(`status ${status}`))
    }
    asked.onerror = () => failed(new Error(noAnswer))
    asked.send(body)
  })

/** A text as the board would show it, or what it changed, as elements for this page. @param {object} given `text`; `format` or `before` */
export const rendered = async (given) => {
  const found = (await documentAt('/preview', JSON.stringify(given))).getElementById('preview')
  return [...found.childNodes].map((node) => document.importNode(node, true))
}

/** A post as lists show it, rendered by the board. */
export const lineOf = async (id) => {
  const line = (await documentAt(`/e/${id}/line`)).getElementById(`e-${id}`)
  if (line === null) throw new Missing('the post is gone')
  return document.importNode(line, true)
}

/** Puts a post under the one that it answers, after the existing replies; a post that is already there is left alone. */
export const placeReply = async (parent, id) => {
  const line = await lineOf(id)
  const there = document.getElementById(line.id)
  if (there !== null) return there
  line.classList.add('fresh')
  const isThread = parent.closest('[data-thread-posts]') !== null
  if (isThread) {
    line.querySelector(':scope > .context')?.remove()
    let list = parent.nextElementSibling
    if (list === null || !list.classList.contains('replies')) {
      list = make('ol', { class: 'replies' })
      parent.after(list)
    }
    list.append(make('li', {}, line))
  } else parent.after(line)
  announce(line)
  return line
}

/** Shows a list of the page, which may have been empty, as it is now. */
export const renewList = async (name) => {
  const found = (await documentAt(location.pathname + location.search)).querySelector(name)
  if (found === null) return
  const fresh = document.importNode(found, true)
  document.querySelector(`${name}, .content > .empty`).replaceWith(fresh)
  announce(fresh)
}

/** Replaces the post with its current rendering by the board. */
export const renewPost = async (post) => {
  const line = await lineOf(post.dataset.id)
  if (post.closest('.replies') !== null) line.querySelector(':scope > .context')?.remove()
  post.classList.toggle('gone', line.classList.contains('gone'))
  post.replaceChildren(...line.childNodes)
  announce(post)
}

/** A conversation is a private room whose people never change. */
export const isConversation = (room) => room.startsWith('dm-')

/** What this browser stores for the reader, if it stores anything. */
export const kept = {
  get: (name) => {
    try {
      return JSON.parse(localStorage.getItem(name) ?? 'null')
    } catch {
      return null
    }
  },
  set: (name, value) => {
    try {
      if (value === undefined) localStorage.removeItem(name)
      else localStorage.setItem(name, JSON.stringify(value))
    } catch {
      // A browser without storage still shows the open page.
    }
  },
  names: () => {
    try {
      return Object.keys(localStorage)
    } catch {
      return []
    }
  },
}

/** What the pages call the operations that refusals name, and what they can do instead. */
const controls = {
  'conversation.open': '“Write to someone in private” in your inbox',
  'conversation.respond': '“Accept” or “Decline” in the inbox',
  'delegation.list': 'the page of your key',
  'delegation.revoke': '“Revoke” on the page of your key',
  'docs.create': '“New document” in the room',
  'docs.read': 'the page of the document',
  'identity.unmute': '“Unmute” on the page of your key',
  'identity.unsuspend': '“End the suspension” under Moderation',
  'room.bans': 'the room under Moderation',
  'room.create': '“New room” under Rooms',
  'room.invite.accept': '“Join” with its code',
  'room.join': '“Join the room” on the page of its people',
  'room.member.add': '“Add as a member” on the page of its people',
  'room.member.remove': '“Remove” on the page of its people',
  'room.members': 'the page of its people',
  'room.moderator.remove': '“Make an ordinary member” on the page of its people',
  'room.owner.transfer': '“Transfer the room” on the page of its people',
  'room.policy.set': '“Set the policy” on the page of its people',
  'room.restore': '“Show again” under Moderation',
  'room.unban': '“End the ban” under Moderation',
  'room.unfollow or thread.unfollow': '“Unfollow” on the page of your key',
  'sign with the new one': 'forget it on the page of your key, then open the file of the new one there',
  'thread.lock with true': '“Lock” under Moderation',
  'thread.lock with false': '“Unlock” under Moderation',
  'thread.lock': '“Unlock” under Moderation',
  'thread.move': '“Move” under Moderation',
  'thread.pin and false': '“Unpin” under Moderation',
  'thread.pin with false': '“Unpin” under Moderation',
  'webhook.delete': '“Delete” under Webhooks',
  'webhook.list': 'the page of your webhooks',
  'work.claim': '“Claim it” on the page of the work',
  'work.get': 'the page of the work',
}
const named = Object.keys(controls).sort((a, b) => b.length - a.length)
const operationNames = new RegExp(`\\b(?:${named.join('|').replaceAll('.', '\\.')})(?![\\w.]\\w)`, 'g')

/** A refusal by the board, in the words of the pages. */
export class Refused extends Error {
  constructor({ code, message, details }) {
    super(message.replace(operationNames, (name) => controls[name]))
    this.code = code
    this.details = details
  }
}
export const said = (error) =>
  `${error instanceof Refused ? 'The board says' : 'That did not work'}: ${error.message.replace(/\.$/, '')}.`

/** @param {() => Promise<unknown>} build builds what is in `place`, which says so if it takes a while; if that fails, the place says why */
export const showing = (place, build) => () => {
  if (place.childElementCount === 0) place.append(soon())
  return build().catch((error) => place.replaceChildren(make('p', { class: 'problem', role: 'alert' }, said(error))))
}
/** For a place that is being filled: visible if that takes longer than a moment. */
export const soon = () => make('p', { class: 'quiet soon' }, 'One moment.')

const noAnswer = 'the board cannot be reached'

/** Reads public data of the board. */
export const get = async (path) => {
  const asked = fetch(path, { credentials: 'omit' }).then((answer) => answer.json())
  const { ok, data, error } = await asked.catch(() => {
    throw new Error(noAnswer)
  })
  if (!ok) throw new Refused(error)
  return data
}

/** Keys */

/** @template Value @param {IDBRequest<Value>} request @returns {Promise<Value>} */
const settled = (request) =>
  new Promise((done, failed) => {
    request.onsuccess = () => done(request.result)
    request.onerror = () => failed(request.error)
  })
const store = async (mode) => {
  const opening = indexedDB.open('broadside', 1)
  opening.onupgradeneeded = () => opening.result.createObjectStore('keys')
  return (await settled(opening)).transaction('keys', mode).objectStore('keys')
}

/** Why this browser cannot sign; undefined if it can. */
export const unable = async () => {
  const made = await crypto.subtle?.generateKey('Ed25519', false, ['sign', 'verify']).catch(() => undefined)
  if (made !== undefined)
    return store('readonly').then(
      () => undefined,
      () =>
        'This browser stores nothing for this site, so it cannot keep a key. Allow the site to store data, which browsers call cookies or site data, and reload this page.',
    )
  return globalThis.isSecureContext
    ? 'This browser cannot make Ed25519 keys, which posts are signed with.'
    : 'A browser creates keys only on pages served over https or from this machine.'
}

const algorithm = 'Ed25519'
/** A non-extractable signing key from a JWK with `d` and `x`, which must belong together. */
const keyOf = async ({ d, x }) => {
  const base = { kty: 'OKP', crv: 'Ed25519', x }
  const privateKey = await crypto.subtle.importKey('jwk', { ...base, d }, algorithm, false, ['sign'])
  const publicKey = await crypto.subtle.importKey('jwk', base, algorithm, false, ['verify'])
  const probe = encoder.encode('broadside')
  const signature = await crypto.subtle.sign(algorithm, privateKey, probe)
  if (!(await crypto.subtle.verify(algorithm, publicKey, signature, probe)))
    throw new KeyFileProblem('the public and private halves of this key do not match')
  return { publicKey: x, id: await sha256(fromBase64url(x)), privateKey }
}

const roundsMin = 600_000
const roundsMax = 10_000_000
/** The cipher of a sealed file: all other contents of the file are authenticated, in this order. */
const cipherOf = async (head, passphrase, use) => {
  const words = encoder.encode(passphrase.normalize('NFKC'))
  const secret = await crypto.subtle.importKey('raw', words, 'PBKDF2', false, ['deriveKey'])
  const how = { name: 'PBKDF2', hash: 'SHA-256', salt: fromBase64url(head.salt), iterations: head.rounds }
  const key = await crypto.subtle.deriveKey(how, secret, { name: 'AES-GCM', length: 256 }, false, [use])
  const additionalData = encoder.encode(`broadside-key-v2\n${JSON.stringify(head)}`)
  return [{ name: 'AES-GCM', iv: fromBase64url(head.nonce), additionalData }, key]
}
const headOf = ({ public_key, id, rounds, salt, nonce }) => ({
  type: 'broadside-key',
  version: 2,
  public_key,
  id,
  kdf: 'PBKDF2-SHA-256',
  rounds,
  salt,
  cipher: 'AES-256-GCM',
  nonce,
})
const random = (bytes) => base64url(crypto.getRandomValues(new Uint8Array(bytes)))

/** The text of a key file; with a passphrase, one that only the passphrase opens. */
const fileOf = async ({ d, x }, id, passphrase) => {
  if (passphrase === '') return `${JSON.stringify({ type: 'broadside-key', public_key: x, id, seed: d })}\n`
  const head = headOf({ public_key: x, id, rounds: roundsMin, salt: random(16), nonce: random(12) })
  const sealed = await crypto.subtle.encrypt(...(await cipherOf(head, passphrase, 'encrypt')), fromBase64url(d))
  return `${JSON.stringify({ ...head, sealed: base64url(new Uint8Array(sealed)) })}\n`
}

class KeyFileProblem extends Error {}
/** The file needs a passphrase, or another one than the one given. */
export class Sealed extends KeyFileProblem {}

/** @param {string} text a key file of either version, or a PKCS#8 PEM @returns the JWK's `d` and `x` */
const halvesIn = async (text, passphrase) => {
  if (text.includes('-----BEGIN')) {
    const der = fromBase64url(text.replace(/-----[^-]+-----|\s/g, '').replaceAll('=', ''))
    return crypto.subtle.exportKey('jwk', await crypto.subtle.importKey('pkcs8', der, algorithm, true, ['sign']))
  }
  const file = JSON.parse(text)
  if (file.version === undefined) return { d: file.seed, x: file.public_key }
  const isKnown = file.version === 2 && file.kdf === 'PBKDF2-SHA-256' && file.cipher === 'AES-256-GCM'
  if (!isKnown || !(file.rounds >= roundsMin && file.rounds <= roundsMax))
    throw new KeyFileProblem('this is not a key file that this page can read')
  if (passphrase === '') throw new Sealed('this key file opens with its passphrase')
  const cipher = await cipherOf(headOf(file), passphrase, 'decrypt')
  const seed = await crypto.subtle.decrypt(...cipher, fromBase64url(file.sealed)).catch(() => {
    throw new Sealed('the passphrase does not open this file, or the file was changed')
  })
  return { d: base64url(new Uint8Array(seed)), x: file.public_key }
}

export const save = (content, name, type = 'application/json') => {
  const address = URL.createObjectURL(new Blob([content], { type }))
  make('a', { href: address, download: name }).click()
  setTimeout(() => URL.revokeObjectURL(address), 60_000)
}
export const saveKey = ({ id }, text) => save(text, `broadside-key-${id.slice(0, 8)}.json`)

/** A new key: the signing key, and the text of its file. It is not stored until `keys.put`. */
export const freshKey = async (passphrase = '') => {
  const { privateKey } = await crypto.subtle.generateKey(algorithm, true, ['sign', 'verify'])
  const { d, x } = await crypto.subtle.exportKey('jwk', privateKey)
  const key = await keyOf({ d, x })
  const file = await fileOf({ d, x }, key.id, passphrase)
  return { key: passphrase === '' ? key : { ...key, sealed: file }, file }
}

/** The key in a file, without storing it. */
export const keyIn = async (text, passphrase = '') => {
  try {
    const key = await keyOf(await halvesIn(text, passphrase))
    return text.includes('"sealed"') ? { ...key, sealed: text } : key
  } catch (error) {
    // Whatever JSON, base64 or WebCrypto say about it means the same to a person.
    throw error instanceof KeyFileProblem ? error : new KeyFileProblem('this is not a key file that this page can read')
  }
}

/**
 * Keys of this browser by name, each `{ publicKey, id, privateKey }`, with `sealed` if its file has a passphrase, and `isSaved`: whether a
 * copy is in a file. Other tabs learn of a change of the own key by the entry `me` (me.js).
 */
export const keys = {
  async get(name = 'own') {
    return settled((await store('readonly')).get(name))
  },
  async put(key, name = 'own') {
    await settled((await store('readwrite')).put(key, name))
    if (name === 'own') keys.announce(key, 0)
    return key
  },
  /** Stores the first key of this browser. @returns the key that it has from now on, which another tab may have stored before */
  async add(key, isNew) {
    try {
      await settled((await store('readwrite')).add(key, 'own'))
    } catch (error) {
      if (error?.name !== 'ConstraintError') throw error
      return keys.get()
    }
    keys.announce(key, isNew ? Date.now() : 0)
    return key
  },
  announce(key, at) {
    // Requests persistence, so that a browser short of space does not evict the key. Firefox asks the person first, who may take their
    // time, so nothing waits for the result.
    navigator.storage?.persist?.().catch(() => false)
    kept.set('me', { key: key.publicKey, id: key.id, at })
  },
  /** Removes a key; with the own key, everything that was stored for its owner, such as drafts for private rooms. */
  async forget(name = 'own') {
    await settled((await store('readwrite')).delete(name))
    if (name !== 'own') return
    await settled((await store('readwrite')).delete('next'))
    for (const each of kept.names())
      if (each.startsWith('draft ') || ['news', 'mutes', 'seen', 'votes', 'me'].includes(each)) kept.set(each)
  },
  /** Creates the first key of this browser, and saves its file unless that is not wanted. */
  async make({ isSaved = true, passphrase = '' } = {}) {
    const { key, file } = await freshKey(passphrase)
    const own = await keys.add({ ...key, isSaved }, true)
    if (isSaved && own.publicKey === key.publicKey) saveKey(key, file)
    return own
  },
  /** Stores the key of a file, which never replaces another key. */
  async load(key) {
    const own = await keys.add({ ...key, isSaved: true }, false)
    if (own.publicKey !== key.publicKey)
      throw new Error(
        'this browser has another key already: reload this page to see it, and forget it before you load this file',
      )
    return own
  },
}

/** The identity that this browser's key acts for, as the board knows it: `{ id, handle?, key }`; requested again when stale. */
export const whoIs = async (key, maxAgeMs = 600_000) => {
  const known = kept.get('me')
  if (known?.key === key.publicKey && Date.now() - known.at < maxAgeMs) return known
  const base = { key: key.publicKey, id: key.id, at: Date.now() }
  const found = await send(key, { operation: 'identity.get' }).then(
    ({ identity }) => ({ ...base, id: identity.id, handle: identity.handle }),
    (error) => {
      // The board does not know an identity before it has posted in public.
      if (!(error instanceof Refused)) throw error
      return base
    },
  )
  // The key may have been forgotten meanwhile, and then nothing about it stays.
  if ((await keys.get())?.publicKey === key.publicKey) kept.set('me', found)
  return found
}

/** Signing and sending */

/**
 * Computes the proof of work that some rooms require for a post: a hash with leading zeros, bound to the command (src/format/signing.ts).
 */
const solve = async (bytes, bits, say) => {
  const head = `broadside-proof-v1\n${await sha256(bytes)}\n`
  const batch = 512
  for (let counter = 0; ; counter += batch) {
    const tried = Array.from({ length: batch }, (_, n) =>
      crypto.subtle.digest('SHA-256', encoder.encode(head + (counter + n))),
    )
    const found = (await Promise.all(tried)).findIndex(
      (digest) => Math.clz32(new DataView(digest).getUint32(0)) >= bits,
    )
    if (found >= 0) return `${bits}.${counter + found}`
    if (counter % (batch * 64) === 0)
      say(
        `This room requires ${bits} bits of work: ${counter.toLocaleString()} of about ${(2 ** bits).toLocaleString()} tries.`,
      )
  }
}

export const sign = async ({ privateKey }, bytes) =>
  base64url(new Uint8Array(await crypto.subtle.sign(algorithm, privateKey, bytes)))

/** How many ms the clock of this device is behind the board's. Found when the board refuses a timestamp, and kept for later pages. */
let clockLag = kept.get('clock') ?? 0
/** What is wrong with the clock of this device, in words. */
const clockWords = () => {
  const minutes = Math.round(Math.abs(clockLag) / 60_000)
  const [count, unit] =
    minutes < 90
      ? [minutes, 'minute']
      : minutes < 2_880
        ? [Math.round(minutes / 60), 'hour']
        : [Math.round(minutes / 1_440), 'day']
  const amount = `${count} ${unit}${count === 1 ? '' : 's'}`
  return `Your device’s clock is ${amount} ${clockLag > 0 ? 'slow' : 'fast'}. Set it, then try again.`
}

/** A signed command and its signed bytes; `with` is a key that also signs these bytes, as proof. */
const signed = async (key, fields, { with: other }) => {
  const { service, order } = document.getElementById('account').dataset
  const { data } = fields
  const stored = await Promise.all([keys.get(), keys.get('operate')])
  if (!stored.some((each) => each?.publicKey === key.publicKey))
    throw new Error('The key of this browser was changed in another tab. Reload this page, then try again.')
  const command = {
    ...fields,
    ...(typeof data === 'object' ? { data: JSON.stringify(data) } : {}),
    public_key: key.publicKey,
    timestamp: Math.floor((Date.now() + clockLag) / 1000),
    nonce: random(16),
  }
  const isGiven = (value) => value !== undefined && value !== '' && value !== 0 && value.length !== 0
  const given = order.split(' ').filter((name) => isGiven(command[name]))
  const inner = JSON.stringify(Object.fromEntries(given.map((name) => [name, command[name]])))
  const bytes = encoder.encode(
    `{"version":1,"service":${JSON.stringify(service)},"command":${inner}}`
      .replaceAll('\u2028', '\\u2028')
      .replaceAll('\u2029', '\\u2029'),
  )
  command.signature = await sign(key, bytes)
  if (other !== undefined) command.proof = await sign(other, bytes)
  return { command, bytes }
}

/** At the edge of the page: what acts and reads wait for that have no place to say it. */
let edge
const sayAtEdge = (words) => {
  edge ??= document.body.appendChild(make('p', { class: 'edge', role: 'status' }))
  edge.textContent = words
}

/**
 * Signs a command and sends it until its outcome is known: resending the same bytes has no second effect.
 * @returns its answer's `data`
 */
export const send = async (key, fields, { say = sayAtEdge, ...more } = {}) => {
  // Screen readers announce a change of what was there before.
  if (say === sayAtEdge) say('')
  try {
    return await deliver(key, fields, { say, ...more })
  } finally {
    if (say === sayAtEdge) say('')
  }
}
const deliver = async (key, fields, { say, isSetRight = false, ...more }) => {
  const { command, bytes } = await signed(key, fields, more)
  let body = JSON.stringify(command)
  // Only a command that was surely not executed may be signed again.
  let isUnknown = false
  for (let waitMs = 500; ; waitMs = Math.min(waitMs * 2, 10_000)) {
    const answer = await fetch('/v1/command', {
      method: 'POST',
      body,
      headers: { 'content-type': 'application/json' },
      credentials: 'omit',
    }).catch(() => undefined)
    const told = await answer?.json().catch(() => undefined)
    if (told?.ok) return told.data
    const [, bits] =
      told?.error?.code === 'proof_required' ? (/ (\d+) bits of work/.exec(told.error.message) ?? []) : []
    if (bits !== undefined && command.proof === undefined) {
      command.proof = await solve(bytes, Number(bits), say)
      body = JSON.stringify(command)
      continue
    }
    const boardTime = Date.parse(answer?.headers.get('date') ?? '')
    if (told?.error?.code === 'stale_timestamp' && !isUnknown && !Number.isNaN(boardTime)) {
      clockLag = boardTime - Date.now()
      kept.set('clock', clockLag)
      if (isSetRight) throw new Refused({ ...told.error, message: clockWords() })
      return deliver(key, fields, { say, isSetRight: true, ...more })
    }
    if (told !== undefined && answer.status !== 429 && answer.status < 500) throw new Refused(told.error)
    isUnknown ||= told === undefined || answer.status >= 500
    const seconds = Number(answer?.headers.get('retry-after') ?? 0)
    // A command cannot wait longer than its signature is valid.
    if (seconds > 60) throw new Refused(told.error)
    say(told === undefined ? 'The board cannot be reached; trying again.' : `${told.error.message}; trying again.`)
    await new Promise((done) => setTimeout(done, Math.max(waitMs, seconds * 1000)))
  }
}

/** The same for a read. If it has to wait longer than a signature is valid, it is signed again. */
export const read = async (key, fields, say) => {
  for (;;) {
    const begun = Date.now()
    try {
      return await send(key, fields, { say })
    } catch (error) {
      if (error.code !== 'stale_timestamp' || Date.now() - begun < 60_000) throw error
    }
  }
}

/** All items of a signed list, up to `most`. */
export const readAll = async (key, fields, name, most = 1_000) => {
  const items = []
  let cursor
  do {
    const found = await read(key, { ...fields, limit: 100, ...(cursor === undefined ? {} : { cursor }) })
    items.push(...found[name])
    cursor = found.has_more ? found.next_cursor : undefined
  } while (cursor !== undefined && items.length < most)
  return items
}

const identities = new Map()
/** An identity by its id, each requested once; for one that the board does not know, only the id. */
export const identityAt = (id) => {
  if (!identities.has(id))
    identities.set(
      id,
      get(`/api/identities/${id}`).then(
        ({ identity }) => identity,
        () => ({ id }),
      ),
    )
  return identities.get(id)
}
/** The id of an identity given by its handle. Resolved before signing, because signed bytes with a handle would not say who was meant. */
export const identityOf = async (named) => {
  if (named === '' || /^[0-9a-f]{64}$/.test(named)) return named
  return (await get(`/api/identities/@${encodeURIComponent(named.replace(/^@/, ''))}`)).identity.id
}

const valuesOf = (element) =>
  Object.fromEntries([...new FormData(element)].filter(([, value]) => typeof value === 'string'))

/** Stores what is typed into a form, and shows what was typed before the page was left. */
const keepDraft = (element, name) => {
  element.addEventListener('input', () => kept.set(name, valuesOf(element)))
  const values = kept.get(name)
  if (values === null) return
  for (const control of element.elements) {
    if (control.type === 'checkbox') control.checked = control.name in values
    else if (control.name in values) control.value = values[control.name]
  }
}

/** A form that is folded up, unless it has a draft. */
export const folded = (title, element, draft) =>
  make('details', kept.get(`draft ${draft}`) === null ? {} : { open: '' }, make('summary', {}, title), element)

/**
 * A form with its fields, one button, and its status. `act` gets their values and returns the status text. `draft`: the name under which
 * what is typed stays in this browser until it is sent; then the form is empty again.
 */
export const form = (fields, words, act, draft) => {
  const status = make('p', { role: 'status' })
  const submit = make('button', { type: 'submit' }, words)
  const made = make('form', { class: 'write' }, ...fields, make('div', { class: 'actions' }, submit), status)
  made.addEventListener('submit', (submitted) => {
    submitted.preventDefault()
    const values = valuesOf(made)
    void perform(submit, async () => {
      try {
        status.textContent = ''
        const done = await act(values, (said) => {
          status.textContent = said
        })
        status.replaceChildren(done ?? 'Done.')
        // What was typed meanwhile was not sent.
        if (draft === undefined || JSON.stringify(valuesOf(made)) !== JSON.stringify(values)) return
        made.reset()
        kept.set(`draft ${draft}`)
      } catch (error) {
        status.textContent = said(error)
      }
    })
  })
  if (draft !== undefined) keepDraft(made, `draft ${draft}`)
  return made
}

/** Buttons that report their outcome. */
export const doing = (...each) => {
  const status = make('span', { role: 'status' })
  const buttons = each.map(([words, act]) =>
    button(words, async () => {
      try {
        status.textContent = 'Working'
        status.textContent =
          (await act((told) => {
            status.textContent = told
          })) ?? 'Done.'
      } catch (error) {
        status.textContent = said(error)
      }
    }),
  )
  return make('div', { class: 'actions' }, ...buttons, status)
}

/** A list with actions for each item. `actsOf(item, remove)`: pairs of label and action, as `doing` takes them. */
export const rows = (items, lineOf, actsOf) => {
  const list = make('ul', { class: 'rows' })
  for (const each of items) {
    const item = make('li', {})
    const remove = () => {
      const hadFocus = item.contains(document.activeElement)
      item.remove()
      if (hadFocus) focusOn(list)
    }
    const acts = actsOf(each, remove)
    item.append(make('div', { class: 'line' }, ...lineOf(each), ...(acts.length === 0 ? [] : [doing(...acts)])))
    list.append(item)
  }
  return list
}
/** A list whose items can be ended one by one. */
export const endable = (items, lineOf, words, end) =>
  rows(items, lineOf, (each, remove) => [[words, () => end(each).then(remove)]])
