/**
 * Live threads: replies appear on the page of a thread, and posts that are removed or edited change in place. Lists of threads show how
 * many posts are new, and load them on request. News comes by long polls (/api/updates), which resume after a lost connection.
 */
import { announce, button, documentAt, get, lineOf, Missing, make, placeReply, renewList, renewPost } from './board.js'

const waitSeconds = 50
const thread = document.querySelector('[data-thread-posts]')
const list = document.querySelector('.threads, .content > .empty')
const room = thread?.dataset.room ?? document.querySelector('[data-follow-room]')?.dataset.followRoom

/** Resolves when the page is visible: a hidden page sends no requests. */
const visible = () =>
  document.visibilityState === 'visible'
    ? Promise.resolve()
    : new Promise((done) => document.addEventListener('visibilitychange', () => done(), { once: true }))

/** A browser that goes back to a page may show it as it was then. */
const isBack = performance.getEntriesByType('navigation')[0]?.type === 'back_forward'

const countOf = (count, one, more) => `${count.toLocaleString('en-US')} ${count === 1 ? one : more}`

/**
 * Follows news from now on. `begin` is called with the first answer: the page may be older. `onUpdate` may be called again with an update
 * that it has seen.
 * @param {(update: object) => unknown} onUpdate @param {() => unknown} begin @param {() => string[]} rooms
 */
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
      if (cursor === undefined) await begin()
      for (const update of answer.updates) await onUpdate(update)
      // If something failed, the same updates are asked for again.
      cursor = answer.cursor
      failed = 0
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
  /** Shows the posts as they are now, and the links to other pages of the thread. */
  const renewPosts = async () => {
    const shown = (await documentAt(location.pathname + location.search)).querySelector('[data-thread-posts]')
    if (shown === null || thread.querySelector('.in-place') !== null) return
    const fresh = document.importNode(shown.parentNode, true)
    for (const pager of document.querySelectorAll('.pager')) pager.remove()
    const [before, after] = fresh.querySelectorAll('.pager')
    if (before !== undefined) thread.before(before)
    if (after !== undefined) thread.after(after)
    thread.replaceChildren(...fresh.querySelector('[data-thread-posts]').childNodes)
    announce(thread)
  }
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
  const unlessMissing = (error) => {
    if (!(error instanceof Missing)) throw error
  }
  void follow(
    ({ type, event }) => {
      if (event === undefined) return undefined
      const isNew = type === 'event.posted' && event.supersedes === undefined
      return (isNew ? arrive(event) : change(event)).catch(unlessMissing)
    },
    async () => {
      const { replies } = await get(`/api/thread/${root}?limit=1`)
      const isBehind = document.getElementById('replies').textContent !== countOf(replies, 'reply', 'replies')
      if (isBack || isBehind) await renewPosts()
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
    if (timers.has(renew)) return
    const act = () => {
      timers.delete(renew)
      void renew().catch(() => {})
    }
    timers.set(renew, setTimeout(act, 300))
  }
  const changed = ({ target }) => {
    if (!thread.contains(target)) return
    const post = target.closest('.post')
    if (post === null || post.dataset.id === root || post.classList.contains('target')) soon(renewFrame)
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
    await renewList('.threads')
    arrived = []
    count()
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
    () => (isBack ? renew() : undefined),
    () => [room, ...new Set(movedHere().map(({ from }) => from))],
  )
}

const isFirst = !new URLSearchParams(location.search).has('cursor')
if (thread !== null) followFrame()
// Only the newest page of a thread or list updates.
if (thread !== null && document.querySelector('.pager [rel="next"]') === null) followThread()
else if (thread === null && list !== null && isFirst) followList()
