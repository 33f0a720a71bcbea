/** What the reader may do in the room of the page, where that depends on their role: to start threads, to reply, to join. */
import { button, link, make, Refused, read, said, send } from './board.js'
import { me } from './me.js'

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
