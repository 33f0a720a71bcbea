/**
 * Actions on a post in place: reply, quote, vote, edit, redact, report, copy its link, mute its author.
 */
import {
  announce,
  button,
  documentAt,
  focusOn,
  get,
  kept,
  keys,
  make,
  placeReply,
  renewPost,
  said,
  send,
  unable,
} from './board.js'
import { composer } from './composer.js'
import { me, muted } from './me.js'
import { follow, isAmong, roleIn } from './standing.js'

const votesKept = 500
const authorOf = (post) => post.querySelector(':scope > .by .person')?.getAttribute('href').slice('/i/'.length)

/** What happened to a post, for screen readers: the element that had the focus may be gone. */
const told = make('p', { class: 'unseen', role: 'status' })
document.querySelector('main').append(told)
export const tell = (words) => {
  told.textContent = words
}

/** Opens a place under a post, and closes any that was open. @returns the place, and a way to close it that keeps the focus at the post */
const openUnder = (post) => {
  const isFromMenu = document.activeElement?.matches('summary')
  post.querySelector(':scope > .in-place')?.remove()
  const place = make('div', { class: 'writer in-place' })
  post.append(place)
  const close = () => {
    const hadFocus = place.contains(document.activeElement)
    place.remove()
    if (!hadFocus) return
    const opener = post.querySelector(`:scope > .under > .acts > ${isFromMenu ? '.menu > summary' : 'button'}`)
    if (opener === null) focusOn(post)
    else opener.focus()
  }
  return { place, close }
}

/** Opens a form under a post. @param {(answer: object) => Promise<Element>} show shows what was written, which gets the focus */
export const writeUnder = async (post, options, show) => {
  const { place, close } = openUnder(post)
  const onPosted = async (answer) => {
    const shown = await show(answer)
    close()
    tell(options.edit === undefined ? 'Posted.' : 'Saved.')
    focusOn(shown)
    shown.scrollIntoView({ block: 'nearest' })
  }
  const form = await composer({ ...options, onCancel: close, onPosted })
  place.append(form)
  form.text.focus()
  return form
}

const reply = async (post, quoted) => {
  const { id, room } = post.dataset
  // The page of the key says why.
  if ((await unable()) !== undefined) return location.assign('/account')
  // The page of the thread says why.
  if (!(await mayReplyTo(post))) return location.assign(`/e/${id}`)
  const name = post.querySelector('.person b, .person .key')?.textContent ?? 'this post'
  const options = { room, replyTo: id, label: `Reply to ${name}` }
  const form = await writeUnder(post, options, ({ event_id: made }) => placeReply(post, made))
  if (quoted !== undefined) form.quote(quoted)
}

/** The selected words of a post, or its beginning. */
const quoteOf = async (post) => {
  const selected = String(getSelection())
  if (selected !== '' && post.contains(getSelection().anchorNode)) return selected
  const { event } = await get(`/api/events/${post.dataset.id}`)
  const words = event.text ?? ''
  return words.length <= 600 ? words : `${words.slice(0, 600).replace(/[\ud800-\udbff]$/, '')}…`
}

/** The form for a new version of a post. */
export const versionOf = (event) => ({
  room: event.room,
  page: event.page,
  replyTo: event.reply_to,
  edit: event,
  label: 'Your post',
})

const edit = async (post) => {
  const { event } = await get(`/api/events/${post.dataset.id}`)
  await writeUnder(post, versionOf(event), async () => {
    await renewPost(post)
    return post
  })
}

/** Asks for a reason in place, then performs the action. */
export const withReason = (post, { label, placeholder, words, act }) => {
  const { place, close } = openUnder(post)
  const reason = make('input', { 'aria-label': label, placeholder, maxlength: '200' })
  const status = make('p', { role: 'status' })
  const row = make(
    'div',
    { class: 'actions' },
    reason,
    button(words, async () => {
      try {
        status.textContent = ''
        await act(reason.value.trim())
        if (place.isConnected) close()
        else focusOn(post)
      } catch (error) {
        status.textContent = said(error)
      }
    }),
    button('Cancel', close, 'plain'),
  )
  place.append(row, status)
  reason.focus()
}

/** The author's own removal of a text. @param {(reason: string) => unknown} show shows the post without it */
export const takeBack = (post, key, event_id, show) =>
  withReason(post, {
    label: 'Reason',
    placeholder: post.dataset.id === undefined ? 'Reason, for the members' : 'Reason, public',
    words: 'Delete the text',
    act: async (given) => {
      const reason = given === '' ? 'Taken back by its author.' : given
      await send(key, { operation: 'event.redact', event_id, reason })
      await show(reason)
      tell('The text is deleted.')
    },
  })

const report = (post, key) =>
  withReason(post, {
    label: 'What is wrong with it',
    placeholder: 'What is wrong, for the operator',
    words: 'Send the report',
    act: async (reason) => {
      await send(key, {
        operation: 'report',
        event_id: post.dataset.id,
        reason: reason === '' ? 'unspecified' : reason,
      })
      note(post, 'Reported to the operator, confidentially.')
    },
  })

/** For moderators of the room that lists this thread but is not the thread's own room. */
const sendBack = (post, key) =>
  withReason(post, {
    label: 'Reason',
    placeholder: 'Reason, public',
    words: `List this thread in ${post.dataset.room} again`,
    act: async (reason) => {
      const { id, room: to } = post.dataset
      await send(key, { operation: 'thread.move', event_id: id, reason, data: { schema: 1, to } })
      location.reload()
    },
  })

/** Shows a message under a post for a few seconds. */
export const note = (post, words) => {
  const shown = make('span', { class: 'quiet' }, words)
  tell(words)
  post.querySelector(':scope > .under').append(shown)
  setTimeout(() => shown.remove(), 4_000)
}

const mute = async (post, key) => {
  await send(key, { operation: 'identity.mute', target: authorOf(post) })
  await muted(0)
  announce(post)
}

/** The votes of a post with its two buttons. Voting again withdraws the vote. */
const votesOf = (post, key) => {
  const { id } = post.dataset
  const shown = post.querySelector(':scope > .under > .votes')
  const [, up = '0', down = '0'] = /^(\d+) for, (\d+) against$/.exec(shown?.title ?? '') ?? []
  const vote = (value, mark) => {
    const made = button('', () => cast(kept.get('votes')?.[id] === value ? 0 : value), 'vote')
    made.append(make('span', { 'aria-hidden': 'true' }, mark), '')
    return made
  }
  const [forIt, against] = [vote(1, '▲'), vote(-1, '▼')]
  const place = make('span', { class: 'votes' }, forIt, against)
  const showOne = (made, words, count, isOwn) => {
    made.lastChild.data = String(count)
    made.setAttribute('aria-pressed', String(isOwn))
    made.setAttribute('aria-label', `${words}: ${count}`)
  }
  const show = (votes) => {
    const own = kept.get('votes')?.[id]
    showOne(forIt, 'For', votes.up, own === 1)
    showOne(against, 'Against', votes.down, own === -1)
  }
  const cast = async (value) => {
    try {
      const { votes } = await send(key, { operation: 'vote', event_id: id, data: { value } })
      const all = Object.entries({ ...kept.get('votes'), [id]: value })
      kept.set('votes', Object.fromEntries(all.filter(([, each]) => each !== 0).slice(-votesKept)))
      show(votes)
      place.dispatchEvent(new Event('votes-changed', { bubbles: true }))
    } catch (error) {
      note(post, said(error))
    }
  }
  show({ up: Number(up), down: Number(down) })
  shown?.remove()
  return place
}

const copyLink = async (post) => {
  try {
    await navigator.clipboard.writeText(new URL(`/e/${post.dataset.id}`, location.href).href)
    note(post, 'Link copied.')
  } catch {
    note(post, 'This browser does not let a page copy.')
  }
}

/** Whether the page names the reader as a moderator of its thread, or of the room that lists it. */
const isModerator = (own, of = 'moderators', page = document) =>
  own !== undefined && page.querySelector('[data-moderators]')?.dataset[of].split(' ').includes(own.who.id)

const moderate = (post) => location.assign(`/moderate?post=${post.dataset.id}`)

/** A menu of the less frequent actions. */
const menuOf = (post, { own, mayReply, mayEdit, mayModerate }, isOwn) => {
  const failing = (act) => async () => {
    shut()
    try {
      await act()
    } catch (error) {
      note(post, said(error))
    }
  }
  const summary = make('summary', {}, 'More')
  /** Closes the menu; its choices would take the focus with them. */
  const shut = () => {
    if (menu.contains(document.activeElement)) summary.focus()
    menu.open = false
  }
  const needsKey = (act) => () => (own === undefined ? location.assign('/account') : act())
  const each = [
    ...(mayReply ? [['Quote', async () => reply(post, await quoteOf(post))]] : []),
    ['Copy link', () => copyLink(post)],
    ...(isOwn
      ? [
          ...(mayEdit ? [['Edit', () => edit(post)]] : []),
          ['Take back', () => takeBack(post, own.key, post.dataset.id, () => renewPost(post))],
        ]
      : [
          ['Report', needsKey(() => report(post, own.key))],
          ['Mute author', needsKey(() => mute(post, own.key))],
        ]),
    ...(mayModerate
      ? [['Moderate', () => moderate(post)]]
      : isModerator(own, 'listModerators')
        ? [['Send back', () => sendBack(post, own.key)]]
        : []),
  ]
  const menu = make(
    'details',
    { class: 'menu' },
    summary,
    make('div', { class: 'choices' }, ...each.map(([words, act]) => button(words, failing(act), 'plain'))),
  )
  menu.addEventListener('focusout', ({ relatedTarget }) => {
    if (relatedTarget !== null && !menu.contains(relatedTarget)) menu.open = false
  })
  menu.addEventListener('keydown', ({ key }) => {
    if (key === 'Escape') shut()
  })
  return menu
}
document.addEventListener('click', ({ target }) => {
  for (const menu of document.querySelectorAll('.menu[open]')) if (!menu.contains(target)) menu.open = false
})

/** Whether the reader may reply on a page: `data-replies` names a limit (src/pages/writer.ts). */
const mayReplyOn = async (page, own) => {
  const limit = page.querySelector('[data-replies]')?.dataset.replies
  if (limit === 'moderators') return isModerator(own, 'moderators', page)
  if (limit !== 'members') return limit === undefined
  return isAmong(limit, await roleIn(page.querySelector('[data-write]').dataset.room))
}

/** Lists have posts of many threads, and the page of each thread knows who may reply. */
const mayReplyTo = async (post) => {
  if (document.querySelector('[data-thread-posts]') !== null) return true
  const page = await documentAt(`/e/${post.dataset.id}`).catch(() => document)
  return mayReplyOn(page, await me())
}

/** The reader: their key, what they may write here, and whether they or a key of this browser that operates the board may moderate here. */
const reader = async () => {
  const own = await me()
  const operating = await keys.get('operate').catch(() => undefined)
  const mayEdit = document.querySelector('[data-replies="closed"]') === null
  const mayModerate = operating !== undefined || isModerator(own)
  return { own, mayReply: await mayReplyOn(document, own), mayEdit, mayModerate }
}

const offer = (post, found) => {
  const { own, mayReply, mayModerate } = found
  const under = post.querySelector(':scope > .under')
  if (under === null || post.dataset.room === undefined) return
  const before = under.querySelector(':scope > .acts')
  const hadFocus = before?.contains(document.activeElement)
  before?.remove()
  if (post.classList.contains('gone')) {
    // What a moderator hid may be shown again; what its author took back is gone.
    const isHidden = post.querySelector(':scope > .gone > a[href="/moderation"]') !== null
    if (isHidden && mayModerate)
      under.prepend(
        make(
          'span',
          { class: 'acts' },
          button('Moderate', () => moderate(post), 'plain'),
        ),
      )
    return
  }
  const isOwn = own !== undefined && authorOf(post) === own.who.id
  const parts = mayReply ? [button('Reply', () => reply(post), 'plain')] : []
  if (own !== undefined && !isOwn) parts.push(votesOf(post, own.key))
  const menu = menuOf(post, found, isOwn)
  under.prepend(make('span', { class: 'acts' }, ...parts, menu))
  if (hadFocus) menu.querySelector('summary').focus()
}

const offerAll = async () => {
  const found = await reader()
  for (const post of document.querySelectorAll('.post[data-id]')) offer(post, found)
}
void offerAll()
document.addEventListener('key-changed', () => {
  void offerAll()
  void follow()
})
document.addEventListener('role-changed', () => void offerAll())
document.addEventListener('post-added', async ({ target }) => {
  const found = await reader()
  const posts = target.matches('.post[data-id]') ? [target] : target.querySelectorAll('.post[data-id]')
  for (const post of posts) offer(post, found)
})

void follow().catch(() => {})
