/**
 * Live threads: replies appear on the page of a thread, and posts that are removed or edited change in place. Lists of threads show how
 * many posts are new, and load them on request. News comes by long polls (/api/updates), which resume after a lost connection.
 */
import { announce, button, documentAt, get, lineOf, make, placeReply, renewPost } from './board.js'

const waitSeconds = 50
const thread = document.querySelector('[data-thread-posts]')
const list = document.querySelector('.threads, .content > .empty')
const room = thread?.dataset.room ?? document.querySelector('[data-follow-room]')?.dataset.followRoom

/** Resolves when the page is visible: a hidden page sends no requests. */
const visible = () =>
  document.visibilityState === 'visible'
    ? Promise.resolve()
    : new Promise((done) => document.addEventListener('visibilitychange', () => done(), { once: true }))

/** Follows news from now on. @param {(update: object) => unknown} onUpdate @param {() => unknown} begin @param {() => string[]} rooms */
const follow = async (onUpdate, begin, rooms) => {
  let cursor
  let failed = 0
  for (;;) {
    await visible()
    try {
      const query = new URLSearchParams({ schema: '1' })
      if (room !== undefined) query.set('room', rooms().join())
      if (cursor !== undefined) {
        query.set('cursor', cursor)
        query.set('wait', String(waitSeconds))
      }
      const answer = await get(`/api/updates?${query}`)
      const isFirst = cursor === undefined
      cursor = answer.cursor
      failed = 0
      if (isFirst) await begin()
      for (const update of answer.updates) await onUpdate(update)
    } catch (error) {
      // A board that was restored from a backup does not know this cursor.
      if (error.code === 'expired') cursor = undefined
      failed++
      await new Promise((done) => setTimeout(done, Math.min(30_000, 1_000 * 2 ** failed) * (0.5 + Math.random())))
    }
  }
}

/** The page of a thread: new posts are put under the ones that they answer. */
const followThread = () => {
  const { threadPosts: root } = thread.dataset
  const newest = () =>
    Math.max(0, ...[...document.querySelectorAll('[data-seq]')].map(({ dataset }) => Number(dataset.seq)))
  const arrive = async (event) => {
    if (event.thread !== root || event.hidden || event.supersedes !== undefined) return
    const parent = document.getElementById(`e-${event.reply_to}`)
    if (parent !== null) await placeReply(parent, event.event_id)
    else if (document.getElementById(`e-${event.event_id}`) === null) {
      const line = await lineOf(event.event_id)
      thread.append(line)
      announce(line)
    }
  }
  const change = async (event) => {
    const post = document.getElementById(`e-${event.supersedes ?? event.event_id}`)
    if (post !== null && thread.contains(post) && post.querySelector('.in-place') === null) await renewPost(post)
  }
  void follow(
    ({ type, event }) => {
      if (event === undefined) return undefined
      return type === 'event.posted' && event.supersedes === undefined ? arrive(event) : change(event)
    },
    async () => {
      // Posts that arrived between the page and the first answer.
      const last = newest()
      const { events } = await get(`/api/events?room=${room}&limit=20`)
      for (const event of events.reverse()) if (event.seq > last) await arrive(event)
    },
    () => [room],
  )
}

/**
 * Updates what the page says about the thread and its post, in the title, the heading and the facts beside it, whenever a post arrives or
 * changes, by a poll or written here.
 */
const followFrame = () => {
  const { threadPosts: root } = thread.dataset
  const countOf = (count, one, more) => `${count.toLocaleString('en-US')} ${count === 1 ? one : more}`
  const factsOf = (page) => page.querySelector('aside section')
  /** The title is that of the first post, the facts are about the post that the address names. */
  const renewFrame = async () => {
    const fresh = await documentAt(location.pathname + location.search)
    document.title = fresh.title
    document.querySelector('h1').replaceChildren(...document.importNode(fresh.querySelector('h1'), true).childNodes)
    const facts = document.importNode(factsOf(fresh), true)
    factsOf(document).replaceWith(facts)
    announce(facts)
  }
  const renewCounts = async () => {
    const { replies, participants } = await get(`/api/thread/${root}?limit=1`)
    document.getElementById('replies').textContent = countOf(replies, 'reply', 'replies')
    document.getElementById('people').textContent = participants === 0 ? '' : countOf(participants, 'person', 'people')
  }
  const timers = new Map()
  const soon = (renew) => {
    clearTimeout(timers.get(renew))
    timers.set(
      renew,
      setTimeout(() => void renew().catch(() => {}), 300),
    )
  }
  const changed = ({ target }) => {
    if (!thread.contains(target)) return
    const post = target.closest('.post')
    if (post.dataset.id === root || post.classList.contains('target')) soon(renewFrame)
  }
  document.addEventListener('votes-changed', changed)
  document.addEventListener('post-added', (added) => {
    if (thread.contains(added.target)) soon(renewCounts)
    changed(added)
  })
}

/** A list of threads: shows how many posts have arrived since, and reloads the list on request. */
const followList = () => {
  /** Threads and posts that arrived and are not in the list. */
  let arrived = []
  const renew = async () => {
    const found = (await documentAt(location.pathname + location.search)).querySelector('.threads')
    const shown = document.querySelector('.threads, .content > .empty')
    if (found === null) return
    const fresh = document.importNode(found, true)
    shown.replaceWith(fresh)
    arrived = []
    announce(fresh)
  }
  const more = button('', renew, 'arrived')
  more.hidden = true
  list.before(make('div', { role: 'status' }, more))
  // A reply in a thread that was moved here names the room that it was signed for.
  const movedHere = () => [...document.querySelectorAll('.threads [data-from]')].map(({ dataset }) => dataset)
  const isHere = ({ room: own, thread: id }) =>
    room === undefined || own === room || movedHere().some(({ thread }) => thread === id)
  /** A thread that was begun on this page is in its list before or after it arrives here. */
  const isListed = ({ event_id: id }) => document.querySelector(`.threads [data-thread="${id}"]`) !== null
  const count = () => {
    arrived = arrived.filter((event) => !isListed(event))
    more.textContent = `${arrived.length} new ${arrived.length === 1 ? 'post' : 'posts'}: show`
    more.hidden = arrived.length === 0
  }
  document.addEventListener('post-added', count)
  void follow(
    ({ type, event }) => {
      if (type !== 'event.posted' || event?.supersedes !== undefined || !isHere(event)) return
      arrived.push(event)
      count()
    },
    () => {},
    () => [room, ...new Set(movedHere().map(({ from }) => from))],
  )
}

const isFirst = !new URLSearchParams(location.search).has('cursor')
if (thread !== null) followFrame()
// Only the newest page of a thread or list updates.
if (thread !== null && document.querySelector('.pager [rel="next"]') === null) followThread()
else if (thread === null && list !== null && isFirst) followList()
