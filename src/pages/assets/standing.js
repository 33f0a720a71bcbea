/** How the reader stands to the room or thread of the page: their role, which decides what they may write, joining, and following. */
import { button, kept, link, make, perform, Refused, read, readAll, said, send } from './board.js'
import { me, newIn, news, seen } from './me.js'

const asked = new Map()

/** The role of the reader in a public room: `owner`, `moderator`, `member`, or `none`. */
export const roleIn = (room) => {
  if (!asked.has(room)) {
    const asking = async () => {
      const own = await me()
      return own === undefined ? 'none' : (await read(own.key, { operation: 'room.get', room })).room.role
    }
    const none = (error) => {
      if (!(error instanceof Refused)) throw error
      return 'none'
    }
    asked.set(room, asking().catch(none))
  }
  return asked.get(room)
}

/** Whether a role belongs to those who may write: everyone, `members`, or the `owner`. */
export const isAmong = (only, role) => only === undefined || role === 'owner' || (only === 'members' && role !== 'none')

/** A button with which the reader joins the room; a person without a key gets one first. The event `role-changed` tells the page, then `then` is called. */
export const joinButton = (room, then) => {
  const status = make('span', { class: 'problem', role: 'alert' })
  const join = async () => {
    const own = await me()
    if (own === undefined) return location.assign('/account')
    try {
      status.textContent = ''
      await send(own.key, { operation: 'room.join', room })
      asked.delete(room)
      document.dispatchEvent(new Event('role-changed'))
      await then?.()
    } catch (error) {
      status.textContent = said(error)
    }
  }
  const without = make('span', { class: 'quiet' }, 'This needs a key: ', link('/account', 'make one'), '.')
  const place = make('div', { class: 'actions' }, button('Join the room', join, 'strong'), status)
  void me().then((own) => own === undefined && place.append(without))
  return place
}

document.addEventListener('key-changed', () => asked.clear())

const followProblem = make('span', { class: 'problem', role: 'alert' })
/** Follow and unfollow: page buttons with `data-follow-room` or `data-follow-thread`. */
export const follow = async () => {
  const own = await me()
  const shown = document.querySelector('[data-follow-room], [data-follow-thread]')
  if (shown === null) return
  const { followRoom: room, followThread: thread } = shown.dataset
  const set = (isFollowed) => {
    shown.textContent = isFollowed ? 'Following' : thread === undefined ? 'Follow' : 'Follow this thread'
    shown.setAttribute('aria-pressed', String(isFollowed))
    shown.hidden = false
  }
  const isThis = (each) => (thread === undefined ? !each.thread && each.room === room : each.thread === thread)
  /** The news name only places in which something is new. */
  const find = async () =>
    (await news()).follows.find(isThis) ??
    (await readAll(own.key, { operation: 'follows.list' }, 'follows')).find(isThis)
  const found = own === undefined ? undefined : await find()
  set(found !== undefined)
  const change = async () => {
    followProblem.remove()
    try {
      const verb = shown.getAttribute('aria-pressed') === 'true' ? 'unfollow' : 'follow'
      const fields =
        thread === undefined ? { operation: `room.${verb}`, room } : { operation: `thread.${verb}`, event_id: thread }
      await send(own.key, fields)
      kept.set('news', undefined)
      set(verb === 'follow')
    } catch (error) {
      followProblem.textContent = said(error)
      shown.after(followProblem)
    }
  }
  shown.onclick = () => (own === undefined ? location.assign('/account') : perform(shown, change))
  if (found === undefined) return
  const count = newIn(found)
  const place = document.getElementById('unread')
  if (count > 0 && place !== null)
    place.textContent = `${count === 100 ? '100 or more' : count} new since your last visit`
  // Only the newest end of a list means that everything has been seen.
  const isEnd =
    thread === undefined
      ? !new URLSearchParams(location.search).has('cursor')
      : document.querySelector('.pager [rel="next"]') === null
  if (found.last !== undefined && isEnd) await seen({ room, thread, seq: found.last.seq })
}

/** Number of the newest post that arrived on the page. */
let arrived = 0
/** What arrives on a page of a followed room or thread while it is visible is not new any more. */
const markArrived = () => {
  const shown = document.querySelector(':is([data-follow-room], [data-follow-thread])[aria-pressed="true"]')
  if (shown === null || arrived === 0 || document.visibilityState === 'hidden') return
  const { followRoom: room, followThread: thread } = shown.dataset
  void seen({ room, thread, seq: arrived })
}
document.addEventListener('visibilitychange', markArrived)
document.addEventListener('post-added', ({ target }) => {
  for (const { dataset } of [target, ...target.querySelectorAll('[data-seq]')])
    arrived = Math.max(arrived, Number(dataset.seq ?? 0))
  markArrived()
})
