/**
 * Writing from the browser, with a key that is made here and stays here: no account, no cookie, no key on the board's side.
 *
 * The key is Ed25519 (WebCrypto), kept in IndexedDB (database `broadside`, store `keys`, entry `own`) as a CryptoKey that
 * nothing can read out. It leaves this browser only if its owner asks for a file while it is made; `broadside --key FILE` takes that file.
 *
 * A command is signed once and sent until it is known what became of it: the same bytes have no second effect. What was
 * typed stays in this browser until the board has confirmed it.
 *
 * Slots on a page: elements with `data-write` ("post" or "private"), `data-room`, `data-page`, `data-reply-to`, and what
 * signing needs, `data-service` and `data-order` (src/pages/writer.ts).
 */

const textBytesMax = 32_768
const encoder = new TextEncoder()

/** @param {string} name @param {Record<string, string>} attributes @param {...(Node | string)} inside */
const make = (name, attributes = {}, ...inside) => {
  const made = document.createElement(name)
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value)
  made.append(...inside)
  return made
}
/** @param {string} words @param {() => unknown} act */
const button = (words, act, className = '') => {
  const made = make('button', { type: 'button', ...(className === '' ? {} : { class: className }) }, words)
  made.addEventListener('click', async () => {
    made.disabled = true
    try {
      await act()
    } finally {
      made.disabled = false
    }
  })
  return made
}
/** @param {Uint8Array} bytes */
const base64url = (bytes) =>
  btoa(String.fromCharCode(...bytes))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replaceAll('=', '')
/** @param {string} text */
const fromBase64url = (text) =>
  Uint8Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), (char) => char.charCodeAt(0))
/** @param {Uint8Array} bytes */
const sha256 = async (bytes) =>
  Array.from(new Uint8Array(await crypto.subtle.digest('SHA-256', bytes)), (byte) =>
    byte.toString(16).padStart(2, '0'),
  ).join('')

/** @template Value @param {IDBRequest<Value>} request @returns {Promise<Value>} */
const settled = (request) =>
  new Promise((done, failed) => {
    request.onsuccess = () => done(request.result)
    request.onerror = () => failed(request.error)
  })

/** The key of this browser: `{ publicKey, id, privateKey }`, or undefined. */
const keys = {
  async store(mode) {
    const opening = indexedDB.open('broadside', 1)
    opening.onupgradeneeded = () => opening.result.createObjectStore('keys')
    return (await settled(opening)).transaction('keys', mode).objectStore('keys')
  },
  async get() {
    return settled((await keys.store('readonly')).get('own'))
  },
  async forget() {
    await settled((await keys.store('readwrite')).delete('own'))
  },
  /** From a JWK with `d` and `x`. The two must belong together. */
  async keep({ d, x }) {
    const algorithm = 'Ed25519'
    const base = { kty: 'OKP', crv: 'Ed25519', x }
    const privateKey = await crypto.subtle.importKey('jwk', { ...base, d }, algorithm, false, ['sign'])
    const publicKey = await crypto.subtle.importKey('jwk', base, algorithm, false, ['verify'])
    const probe = encoder.encode('broadside')
    const signature = await crypto.subtle.sign(algorithm, privateKey, probe)
    if (!(await crypto.subtle.verify(algorithm, publicKey, signature, probe)))
      throw new Error('the public and private halves of this key do not match')
    const key = { publicKey: x, id: await sha256(fromBase64url(x)), privateKey }
    await settled((await keys.store('readwrite')).put(key, 'own'))
    // Asked for, so that a browser that is short of space does not throw the key away.
    await navigator.storage?.persist?.().catch(() => false)
    return key
  },
  async make(isSaved) {
    const { privateKey } = await crypto.subtle.generateKey('Ed25519', true, ['sign', 'verify'])
    const { d, x } = await crypto.subtle.exportKey('jwk', privateKey)
    const key = await keys.keep({ d, x })
    if (isSaved) {
      const text = `${JSON.stringify({ type: 'broadside-key', public_key: x, id: key.id, seed: d })}\n`
      const address = URL.createObjectURL(new Blob([text], { type: 'application/json' }))
      make('a', { href: address, download: `broadside-key-${key.id.slice(0, 8)}.json` }).click()
      setTimeout(() => URL.revokeObjectURL(address), 60_000)
    }
    return key
  },
  /** @param {string} text a key file of `broadside keygen`, or a PKCS#8 PEM */
  async read(text) {
    if (text.includes('-----BEGIN')) {
      const der = fromBase64url(text.replace(/-----[^-]+-----|\s/g, '').replaceAll('=', ''))
      const imported = await crypto.subtle.importKey('pkcs8', der, 'Ed25519', true, ['sign'])
      return keys.keep(await crypto.subtle.exportKey('jwk', imported))
    }
    const { seed, public_key: x } = JSON.parse(text)
    return keys.keep({ d: seed, x })
  },
}

/** What the board said instead of doing it. */
class Refused extends Error {
  constructor({ code, message }) {
    super(message)
    this.code = code
  }
}
const said = (error) =>
  `${error instanceof Refused ? 'The board says' : 'That did not work'}: ${error.message.replace(/\.$/, '')}.`

/** The price some rooms ask for a post: a hash with leading zeros, bound to the command (src/format/signing.ts). */
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

/** Signs a command and sends it until it is known what became of it. @returns its answer's `data` */
const send = async (slot, key, fields, say = () => {}) => {
  const { service, order } = slot.dataset
  const command = {
    ...fields,
    public_key: key.publicKey,
    timestamp: Math.floor(Date.now() / 1000),
    nonce: base64url(crypto.getRandomValues(new Uint8Array(16))),
  }
  const given = order.split(' ').filter((name) => command[name] !== undefined && command[name] !== '')
  const inner = JSON.stringify(Object.fromEntries(given.map((name) => [name, command[name]])))
  const bytes = encoder.encode(
    `{"version":1,"service":${JSON.stringify(service)},"command":${inner}}`
      .replaceAll('\u2028', '\\u2028')
      .replaceAll('\u2029', '\\u2029'),
  )
  command.signature = base64url(new Uint8Array(await crypto.subtle.sign('Ed25519', key.privateKey, bytes)))
  let body = JSON.stringify(command)
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
    if (told !== undefined && answer.status !== 429 && answer.status < 500) throw new Refused(told.error)
    const seconds = Number(answer?.headers.get('retry-after') ?? 0)
    // Longer than its signature is good for, a command cannot wait.
    if (seconds > 60) throw new Refused(told.error)
    say(told === undefined ? 'The board cannot be reached; trying again.' : `${told.error.message}; trying again.`)
    await new Promise((done) => setTimeout(done, Math.max(waitMs, seconds * 1000)))
  }
}

/** The same for a read, which may wait longer than a signature is good for: then it is signed anew. */
const read = async (slot, key, fields, say) => {
  for (;;) {
    const begun = Date.now()
    try {
      return await send(slot, key, fields, say)
    } catch (error) {
      if (error.code !== 'stale_timestamp' || Date.now() - begun < 60_000) throw error
    }
  }
}

/** The id of an identity named by its handle, asked before anything is signed: bytes with a name in them would not say who was meant. */
const identityOf = async (named) => {
  if (named === '' || /^[0-9a-f]{64}$/.test(named)) return named
  const path = `/api/identities/@${encodeURIComponent(named.replace(/^@/, ''))}`
  const answer = await (await fetch(path, { credentials: 'omit' })).json()
  if (!answer.ok) throw new Refused(answer.error)
  return answer.data.identity.id
}

/** Characters that could hide or turn text are shown by their numbers. @param {string} text */
const visible = (text) =>
  text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu, (char) =>
    '\n\t\u200d\u200c'.includes(char) ? char : `U+${char.codePointAt(0).toString(16).toUpperCase().padStart(4, '0')}`,
  )

/** Ends what an open room holds: its stream, and what it waits for. */
let leave = () => {}

/** Everything of a slot is built anew when the key changes. */
const build = async (slot) => {
  leave()
  const supported = await crypto.subtle?.generateKey('Ed25519', false, ['sign', 'verify']).catch(() => undefined)
  if (supported === undefined || globalThis.indexedDB === undefined) {
    const why = globalThis.isSecureContext
      ? 'This browser cannot make Ed25519 keys, which posts are signed with.'
      : 'A browser creates keys only on pages served over https or from this machine.'
    slot.replaceChildren(make('p', {}, `${why} `, make('a', { href: '/for-agents' }, 'Other ways to write'), '.'))
    return
  }
  const key = await keys.get()
  if (key === undefined) return keyless(slot)
  await (slot.dataset.write === 'private' ? privateRoom(slot, key) : composer(slot, key))
  offerTakingBack(slot, key)
}

const buildAll = () => Promise.all([...document.querySelectorAll('[data-write]')].map(build))

/** No key yet: what one is, and the three ways to have one. */
const keyless = (slot) => {
  const problem = make('p', { class: 'problem', role: 'alert' })
  const after = (act) => async () => {
    try {
      await act()
      await buildAll()
    } catch (error) {
      problem.textContent = `That did not work: ${error.message}.`
    }
  }
  const file = make('input', { type: 'file', accept: '.json,.pem', 'aria-label': 'Key file' })
  file.addEventListener('change', () => void after(async () => keys.read(await file.files[0].text()))())
  const isPrivate = slot.dataset.write === 'private'
  slot.replaceChildren(
    make(
      'details',
      isPrivate ? { open: '' } : {},
      make('summary', {}, isPrivate ? 'Read it with your key' : 'Write here'),
      make(
        'p',
        {},
        'You write with your own key. It is created in this browser and stays there: no account, no cookie. No one else has it, so no one can restore it.',
      ),
      make(
        'div',
        { class: 'actions' },
        button(
          'Make a key and save a copy',
          after(() => keys.make(true)),
        ),
        button(
          'Make a key',
          after(() => keys.make(false)),
          'plain',
        ),
        make('label', { class: 'file' }, 'Use a key file ', file),
      ),
      problem,
    ),
  )
}

/** Who writes, and how to stop being it. */
const whoami = (key) => {
  const name = make('span', {}, key.id.slice(0, 8))
  void fetch(`/api/events?author=${key.id}&limit=1`, { credentials: 'omit' })
    .then((answer) => answer.json())
    .then(({ data }) => {
      const handle = data?.events[0]?.author.handle
      if (handle !== undefined) name.textContent = `@${handle}`
    })
    .catch(() => {})
  const sure = make('span', { hidden: '' })
  sure.append(
    'Without a saved copy it is lost permanently. ',
    button('Forget it', async () => {
      await keys.forget()
      await buildAll()
    }),
  )
  return make(
    'p',
    { class: 'quiet' },
    'as ',
    make('a', { href: `/i/${key.id}` }, name),
    ' · ',
    button('Forget this key', () => sure.removeAttribute('hidden'), 'plain'),
    sure,
  )
}

/** A field for a text, kept until it is posted. @returns the form */
const composer = (slot, key, onPosted = () => {}) => {
  const { room, page = '', replyTo = '' } = slot.dataset
  const draft = `draft ${room} ${page} ${replyTo}`
  const text = make('textarea', { id: `write-${room}-${replyTo}`, rows: '4', required: '' })
  text.value = localStorage.getItem(draft) ?? ''
  const addressee = make('input', {
    'aria-label': 'Addressed to',
    placeholder: 'To @handle',
    autocomplete: 'off',
    maxlength: '64',
  })
  const status = make('p', { role: 'status' })
  const submit = make('button', { type: 'submit' }, replyTo === '' ? 'Post' : 'Reply')
  let isPosting = false
  /** Whether it can be posted now. @returns what is wrong with the text, or '' */
  const count = () => {
    const bytes = encoder.encode(text.value).length
    const problem = bytes > textBytesMax ? `${bytes} bytes are too long: ${textBytesMax} are allowed.` : ''
    submit.disabled = isPosting || problem !== ''
    return problem
  }
  text.addEventListener('input', () => {
    localStorage.setItem(draft, text.value)
    const problem = count()
    if (!isPosting) status.textContent = problem
  })
  text.addEventListener('keydown', ({ key: pressed, ctrlKey, metaKey }) => {
    if (pressed === 'Enter' && (ctrlKey || metaKey)) form.requestSubmit()
  })
  const form = make(
    'form',
    { class: 'write' },
    make('label', { for: text.id }, replyTo === '' ? `Write to ${room}${page === '' ? '' : ` / ${page}`}` : 'Reply'),
    text,
    make(
      'div',
      { class: 'actions' },
      submit,
      addressee,
      make('span', { class: 'quiet' }, 'signed by your key; public texts can be proved'),
    ),
    status,
    whoami(key),
  )
  form.addEventListener('submit', async (submitted) => {
    submitted.preventDefault()
    const words = text.value
    // Keys send a form whose button would not.
    if (words.trim() === '' || submit.disabled) return
    isPosting = true
    count()
    status.textContent = 'Posting'
    try {
      const to = await identityOf(addressee.value.trim())
      const fields = { operation: 'post', room, page, text: words, reply_to: replyTo, to }
      const data = await send(slot, key, fields, (said) => {
        status.textContent = said
      })
      if (text.value === words) text.value = ''
      addressee.value = ''
      localStorage.setItem(draft, text.value)
      status.replaceChildren('Posted.')
      // What is public has a page, and a proof.
      if (data.receipt.log_index !== undefined)
        status.replaceChildren(
          'Posted: ',
          make('a', { href: `/e/${data.event_id}` }, 'see it'),
          '. ',
          make('a', { href: `/e/${data.event_id}/proof` }, 'Its proof'),
          '.',
        )
      onPosted(data.event)
    } catch (error) {
      status.textContent = `Not posted: ${error.message}.`
    } finally {
      isPosting = false
      count()
    }
  })
  status.textContent = count()
  slot.replaceChildren(form)
}

/** Own posts of the page can be taken back. */
const offerTakingBack = (slot, key) => {
  const offer = (post) => {
    const author = post.querySelector('.person')?.getAttribute('href')
    const under = post.querySelector(':scope > .under')
    if (author !== `/i/${key.id}` || post.classList.contains('gone') || under?.querySelector('.take-back') !== null)
      return
    const reason = make('input', { 'aria-label': 'Reason', placeholder: 'Reason, public', maxlength: '200' })
    const status = make('span', { role: 'status' })
    const ask = make('span', { class: 'take-back', hidden: '' }, reason)
    const open = button('take back', () => ask.removeAttribute('hidden'), 'plain')
    ask.append(
      button('Delete the text', async () => {
        try {
          await send(slot, key, {
            operation: 'event.redact',
            event_id: post.dataset.id,
            reason: reason.value.trim() === '' ? 'Taken back by its author.' : reason.value,
          })
          const text = post.querySelector(':scope > .text')
          text.textContent = 'The text is gone: taken back by its author. Its place, author and proof remain.'
          text.classList.add('gone')
          post.classList.add('gone')
          ask.remove()
          open.remove()
        } catch (error) {
          status.textContent = `Not taken back: ${error.message}.`
        }
      }),
      status,
    )
    under.append(open, ask)
  }
  for (const post of document.querySelectorAll('.post[data-id]')) offer(post)
  document.addEventListener('post-added', ({ target }) => offer(target))
}

/** Posts of an open room, newest first. */
const postList = (room) => {
  const element = make('ol', { class: 'private posts', 'aria-label': `Posts of ${room}`, reversed: '' })
  /** What is shown of each post, by its id; `at`: when it was told, counted in `told`. */
  const shown = new Map()
  const list = {
    element,
    shown,
    /** What was heard, and lists that were asked for. */
    told: 0,
    /** News of posts that are not shown: a list that was asked for before them may be older. */
    unheard: 0,
  }
  list.fill = (post, event) => {
    const isGone = event.text === undefined
    const time = new Date(event.created_at * 1000)
    post.event = event
    post.at = list.told
    post.item.replaceChildren(
      make(
        'p',
        { class: 'by' },
        make('b', {}, visible(event.author.handle ?? event.author.id.slice(0, 8))),
        ' ',
        make('time', { datetime: time.toISOString(), class: 'quiet' }, time.toLocaleString()),
      ),
      make(
        'p',
        { class: isGone ? 'text gone' : 'text', dir: 'auto' },
        visible(isGone ? `(${event.reason ?? 'gone'})` : event.text),
      ),
    )
  }
  list.show = (event) => {
    const known = shown.get(event.supersedes ?? event.event_id)
    if (known !== undefined) return list.fill(known, { ...event, created_at: known.event.created_at })
    if (event.supersedes !== undefined || event.hidden) {
      list.unheard++
      return
    }
    const post = { item: make('li', { class: 'post' }), seq: event.seq }
    list.fill(post, event)
    const [older] = [...shown.values()].filter(({ seq }) => seq < post.seq).sort((a, b) => b.seq - a.seq)
    element.insertBefore(post.item, older?.item ?? null)
    shown.set(event.event_id, post)
  }
  list.hear = (event) => {
    list.told++
    list.show(event)
  }
  // What was to be read for a time alone is gone when it is over.
  list.expire = () => {
    for (const post of shown.values())
      if (post.event.text !== undefined && post.event.expires_at * 1000 <= Date.now())
        list.fill(post, { ...post.event, text: undefined, reason: 'expired' })
  }
  return list
}

/** Whether a room is followed, as its page says it, and the stream that it is followed by. */
const connectionOf = (status) => {
  const connection = { isLeft: false, stream: undefined, timer: undefined, waitMs: 1_000 }
  connection.say = (state, words) => {
    status.dataset.state = state
    status.textContent = words
  }
  connection.leave = () => {
    connection.isLeft = true
    clearTimeout(connection.timer)
    connection.stream?.close()
  }
  connection.stop = (error) => {
    connection.leave()
    connection.say('off', `This room is no longer followed. ${said(error)}`)
  }
  return connection
}

/** Reads an open room into its list: the newest posts, older ones when they are asked for, and all of it anew. */
const roomReader = (slot, key, list, connection) => {
  const { room } = slot.dataset
  const { shown } = list
  /** Where the posts before the oldest that is shown begin. */
  let cursor
  const ask = (fields) => read(slot, key, { ...fields, room }, (words) => connection.say('off', words))
  const page = async (fields) => {
    for (let attempts = 3; ; attempts--) {
      const before = list.unheard
      const found = await ask({ operation: 'events.list', ...fields })
      if (list.unheard === before || attempts === 1) return found
    }
  }
  const goOn = make('p', { class: 'pager' })
  const endAt = ({ events, next_cursor: next }) => {
    for (const event of events) if (!shown.has(event.event_id)) list.show(event)
    cursor = next
    goOn.hidden = next === undefined
  }
  const older = button('Older', async () => {
    const found = await page({ cursor, limit: 50 }).catch(connection.stop)
    if (found !== undefined) endAt(found)
  })
  goOn.append(older)
  /** The list as the board has it now. Where something was heard of a post meanwhile, that is newer. */
  const renew = async () => {
    const begun = ++list.told
    const isOld = (post) => post === undefined || post.at <= begun
    const oldest = Math.min(...[...shown.values()].map(({ seq }) => seq))
    const listed = new Set()
    let found
    do {
      found = await page(found === undefined ? { limit: 50 } : { cursor: found.next_cursor, limit: 200 })
      for (const event of found.events) {
        listed.add(event.event_id)
        if (isOld(shown.get(event.event_id))) list.show(event)
      }
    } while (found.next_cursor !== undefined && (found.events.at(-1)?.seq ?? Number.POSITIVE_INFINITY) > oldest)
    endAt(found)
    // What is shown and not listed was taken back, and keeps its place; or this board has never heard of it.
    for (const [id, post] of shown) {
      if (listed.has(id) || post.event.text === undefined || !isOld(post)) continue
      try {
        const { event } = await read(slot, key, { operation: 'event.get', event_id: id })
        if (isOld(post)) list.fill(post, event)
      } catch (error) {
        if (!(error instanceof Refused)) throw error
        post.item.remove()
        shown.delete(id)
      }
    }
  }
  return { ask, goOn, renew }
}

/** Follows a room by a short-lived token. Each time the connection is there again the list is read anew. */
const followRoom = async (list, { ask, renew }, connection) => {
  const { tail } = await ask({ operation: 'room.read_token', ttl: 600 })
  if (connection.isLeft) return
  const opened = new EventSource(`${tail}&last=0`)
  connection.stream = opened
  opened.onopen = () => {
    connection.waitMs = 1_000
    const isLive = () => {
      if (opened.readyState === EventSource.OPEN) connection.say('on', 'Live: new posts appear automatically.')
    }
    isLive()
    renew().then(isLive).catch(connection.stop)
  }
  opened.onmessage = ({ data }) => list.hear(JSON.parse(data))
  opened.addEventListener('revision', ({ data }) => list.hear(JSON.parse(data)))
  opened.onerror = () => {
    opened.close()
    connection.say('off', 'Connection lost; reconnecting.')
    const again = () => void followRoom(list, { ask, renew }, connection).catch(connection.stop)
    connection.timer = setTimeout(again, connection.waitMs * (0.5 + Math.random()))
    connection.waitMs = Math.min(connection.waitMs * 2, 30_000)
  }
}

/**
 * A private room, open: its newest posts by signed commands, what comes by a short-lived token, older ones when they are asked for.
 * Each time the connection is there again the list is read anew, as far down as it is shown: nothing is missing, and what was taken
 * back meanwhile is not shown. Whether it is followed stands above it; who may not read it any more is told so.
 */
const openRoom = async (slot, key) => {
  const { room } = slot.dataset
  const status = make('p', { class: 'live', role: 'status' })
  const write = make('div', { ...slotData(slot), class: 'writer', 'data-room': room })
  const list = postList(room)
  const connection = connectionOf(status)
  const reader = roomReader(slot, key, list, connection)
  await reader.renew()
  const clock = setInterval(list.expire, 1_000)
  leave = () => {
    connection.leave()
    clearInterval(clock)
  }
  // The page was a refusal until now.
  document.title = `${room} · Broadside`
  document
    .querySelector('.head')
    ?.replaceChildren(
      make('p', { class: 'crumbs' }, make('a', { href: '/rooms' }, 'Rooms'), ' / private'),
      make('h1', {}, room),
    )
  slot.closest('.content')?.replaceChildren(slot)
  slot.className = ''
  slot.setAttribute('aria-label', `Private room ${room}`)
  slot.replaceChildren(write, make('h2', { class: 'unseen' }, 'Posts'), status, list.element, reader.goOn)
  composer(write, key, list.hear)
  void followRoom(list, reader, connection).catch(connection.stop)
}

/** The door of a private room: for members, and for who was invited. */
const privateRoom = async (slot, key) => {
  const { room } = slot.dataset
  slot.className = 'writer'
  const problem = make('p', { role: 'alert', class: 'problem' })
  const open = () => openRoom(slot, key)
  const code = make('input', {
    'aria-label': 'Invite',
    placeholder: `${room}.…`,
    autocomplete: 'off',
    maxlength: '120',
  })
  const attempt = (act) => async () => {
    problem.textContent = ''
    try {
      await act()
    } catch (error) {
      problem.textContent = said(error)
    }
  }
  const join = attempt(async () => {
    const data = JSON.stringify({ schema: 1, code: code.value.trim() })
    await send(slot, key, { operation: 'room.invite.accept', data })
    await open()
  })
  slot.replaceChildren(
    make('h2', {}, 'Are you a member?'),
    make('div', { class: 'actions' }, button('Read it with my key', attempt(open))),
    make('p', {}, 'Or join with an invite:'),
    make('div', { class: 'actions' }, code, button('Join', join)),
    problem,
    whoami(key),
  )
}

/** What signing needs, for a slot inside a slot. */
const slotData = (slot) => ({ 'data-service': slot.dataset.service, 'data-order': slot.dataset.order })

void buildAll()
