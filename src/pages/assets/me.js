/**
 * The person whose key is in this browser, on every page: their seal, name, and unread count. These come from the positions that the board
 * stores for them (`inbox.get`, `inbox.seen`), so that a second browser with the same key agrees. What was read here is reported to the
 * board at most once a minute, and stored until then.
 */
import { kept, keys, link, make, nameOf, read, readAll, seal, send, whoIs } from './board.js'

const newsMaxAgeMs = 20_000
const newsMax = 50
const mutesMaxAgeMs = 300_000
const pendingName = 'seen'

let asked
/** `{ key, who }`; undefined if this browser has no key. A browser with a key can sign: it created the key, or tested it. */
export const me = () => {
  asked ??= (async () => {
    if (globalThis.indexedDB === undefined) return undefined
    const key = await keys.get().catch(() => undefined)
    if (key === undefined) return undefined
    return { key, who: await whoIs(key).catch(() => ({ id: key.id, key: key.publicKey })) }
  })()
  return asked
}

const isOwn = (found, { key }) => found?.key === key.publicKey

const askNews = async ({ key }) => {
  const { items, follows = [], seen } = await read(key, { operation: 'inbox.get', limit: newsMax })
  const unseen = items.filter(({ at }) => at > seen).length
  const found = { key: key.publicKey, at: Date.now(), items: unseen, follows, seen }
  kept.set('news', found)
  return found
}
let asking
/** The news: `{ items, follows, seen }`, at most `maxAgeMs` old. The parts of a page that ask at the same time share one answer. */
export const news = async (maxAgeMs = newsMaxAgeMs) => {
  const own = await me()
  if (own === undefined) return undefined
  const known = kept.get('news')
  if (isOwn(known, own) && Date.now() - known.at < maxAgeMs) return known
  if (asking?.own !== own) {
    const found = askNews(own).finally(() => {
      if (asking?.found === found) asking = undefined
    })
    asking = { own, found }
  }
  return asking.found
}

/** Positions read here that the board may not know yet. */
const pending = () => kept.get(pendingName) ?? { rooms: {}, threads: {}, inbox: 0 }

/** Number of new posts in a followed place, minus those read here in the meantime. */
export const newIn = (follow) => {
  const { rooms, threads } = pending()
  const read = follow.thread === undefined ? rooms[follow.room] : threads[follow.thread]
  return read !== undefined && follow.last !== undefined && read >= follow.last.seq ? 0 : (follow.new ?? 0)
}
const unread = ({ items, follows, seen }) =>
  (pending().inbox > seen ? 0 : items) + follows.reduce((sum, follow) => sum + newIn(follow), 0)

let timer
let reporting
/**
 * Reports the positions read here, all in one command, one report at a time: the board takes one a minute, and what is read while one waits
 * goes with the next.
 */
const report = async (own) => {
  const { rooms, threads, inbox } = pending()
  const data = {
    schema: 1,
    rooms: Object.entries(rooms).map(([room, seen]) => ({ room, seen })),
    threads: Object.entries(threads).map(([thread, seen]) => ({ thread, seen })),
    ...(inbox === 0 ? {} : { inbox }),
  }
  if (reporting || timer !== undefined || data.rooms.length + data.threads.length + inbox === 0) return
  reporting = true
  try {
    await send(own.key, { operation: 'inbox.seen', data }, { say: () => {} })
    const now = pending()
    const rest = (all, sent) => Object.fromEntries(Object.entries(all).filter(([name, seq]) => !(sent[name] >= seq)))
    kept.set(pendingName, {
      rooms: rest(now.rooms, rooms),
      threads: rest(now.threads, threads),
      inbox: now.inbox > inbox ? now.inbox : 0,
    })
    kept.set('news', undefined)
  } finally {
    reporting = false
    // The board may have refused for now, or there is more by then.
    timer = setTimeout(() => {
      timer = undefined
      reportNow()
    }, 61_000)
  }
}
const reportNow = () =>
  void me()
    .then((own) => own && report(own))
    .catch(() => {})

/**
 * Marks everything up to here as read, at once in this browser and later on the board.
 * @param {{ room?: string, thread?: string, seq?: number, inbox?: number }[]} places
 */
export const seen = async (...places) => {
  const own = await me()
  if (own === undefined) return
  const now = pending()
  for (const { room, thread, seq = 0, inbox = 0 } of places) {
    if (thread !== undefined) now.threads[thread] = Math.max(seq, now.threads[thread] ?? 0)
    else if (room !== undefined) now.rooms[room] = Math.max(seq, now.rooms[room] ?? 0)
    now.inbox = Math.max(inbox, now.inbox)
  }
  kept.set(pendingName, now)
  reportNow()
}

/** Ids of the identities that the reader has muted. */
export const muted = async (maxAgeMs = mutesMaxAgeMs) => {
  const own = await me()
  if (own === undefined) return new Set()
  const known = kept.get('mutes')
  if (isOwn(known, own) && Date.now() - known.at < maxAgeMs) return new Set(known.ids)
  const mutes = await readAll(own.key, { operation: 'mutes.list' }, 'mutes')
  const ids = mutes.map(({ target }) => target)
  kept.set('mutes', { key: own.key.publicKey, at: Date.now(), ids })
  return new Set(ids)
}

const place = document.getElementById('account')
const badge = make('a', { href: '/inbox', class: 'badge', hidden: '' })
place.after(badge)
const signedOut = place.textContent

/** Updates the masthead. */
export const show = async () => {
  const own = await me()
  if (own === undefined) {
    place.textContent = signedOut
    badge.hidden = true
    return
  }
  place.replaceChildren(seal(own.who.id), make('span', {}, nameOf(own.who)))
  place.title = 'Your key, name and settings'
  const found = await news()
  const count = unread(found)
  const isMore = count > 99 || (found.items === newsMax && pending().inbox <= found.seen)
  badge.textContent = `${Math.min(count, 99)}${isMore ? '+' : ''}`
  badge.setAttribute('aria-label', `Inbox: ${badge.textContent} unread`)
  badge.hidden = count === 0
}

/** Reload everything that depends on the key. */
document.addEventListener('key-changed', () => {
  asked = undefined
  void show().catch(() => {})
})
const ownerIn = (text) => {
  const { key, handle } = JSON.parse(text ?? '{}')
  return `${key} ${handle}`
}
/** Another tab made, changed or forgot the key, or gave it a name. */
addEventListener('storage', ({ key: name, oldValue, newValue }) => {
  if (name === 'me' && ownerIn(oldValue) !== ownerIn(newValue)) document.dispatchEvent(new Event('key-changed'))
})
/** The same, while this page was left and waited to be shown again. */
addEventListener('pageshow', async ({ persisted: isAgain }) => {
  if (isAgain && (await keys.get())?.publicKey !== (await me())?.key.publicKey)
    document.dispatchEvent(new Event('key-changed'))
})
void show().catch(() => {})
reportNow()

/** Adds new-post counts to the rooms and threads that a page lists. */
const mark = async () => {
  const { follows } = await news()
  const tag = (follow) => make('span', { class: 'tag new' }, `${newIn(follow)} new`)
  for (const follow of follows) {
    if (newIn(follow) === 0) continue
    const row = follow.thread && document.querySelector(`.threads [data-thread="${follow.thread}"] .line`)
    row?.prepend(tag(follow))
    if (follow.thread !== undefined) continue
    const room = document.querySelector(`.pairs a[href="/room/${follow.room}"]`)
    room?.after(link(`/room/${follow.room}`, `${newIn(follow)} new`, 'tag new'))
  }
}
const hideMuted = async () => {
  const ids = await muted()
  for (const post of document.querySelectorAll('.post[data-id], .threads > li')) {
    const author = post.querySelector('a[href^="/i/"]')?.getAttribute('href').slice('/i/'.length)
    post.classList.toggle('muted', ids.has(author))
  }
}
/** Updates what a page shows once there is a key. */
const arrange = async () => {
  if ((await me()) === undefined) return
  await Promise.all([mark(), hideMuted()])
}
void arrange().catch(() => {})
document.addEventListener('post-added', () => void hideMuted().catch(() => {}))
document.addEventListener('mutes-changed', () => void muted(0).then(hideMuted))
