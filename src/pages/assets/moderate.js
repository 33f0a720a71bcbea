/**
 * /moderate: reports, hiding, suspensions, bans, and room policies, each a signed command. An operator acts with a delegate's key that is
 * valid for at most a day (scope board:operate), so that the operator's own key is in no browser.
 */
import {
  announce,
  button,
  checkbox,
  doing,
  field,
  focusOn,
  form,
  get,
  identityAt,
  identityOf,
  input,
  isByModerator,
  kept,
  keyFirst,
  keys,
  link,
  make,
  person,
  quiet,
  Refused,
  read,
  readAll,
  rows,
  said,
  section,
  select,
  send,
  showing,
  time,
  visible,
} from './board.js'
import { keyFileField } from './composer.js'
import './me.js'
import { policyForm } from './policy.js'

const place = document.getElementById('moderate')

/** A person, by handle if it is known. */
const personAt = async (id) => person(await identityAt(id))

/** The id of a post from an address or an id. */
const postIn = (text) => /[0-9a-f]{32}/.exec(text)?.[0] ?? text.trim()

/** What was asked for has been done already, by someone else or from another report. */
const unlessDone = (error) => {
  if (error.code !== 'wrong_state') throw error
}

/** In place of a text that is not served. */
const goneWords = (found) => (isByModerator(found) ? 'Hidden' : 'The text is gone')

const reportWords = async ({ reporter, reason, created_at: at }) =>
  make('p', { class: 'quiet' }, 'Reported by ', await personAt(reporter), `: ${visible(reason)}, `, time(at))

const suspend = async (key, target, reason, isHiding) => {
  await send(key, {
    operation: 'identity.suspend',
    target,
    reason,
    ...(isHiding ? { data: { schema: 1, hide_posts: true } } : {}),
  }).catch(unlessDone)
  return isHiding
    ? 'Suspended. The board hides all their posts, which takes some time if there are many.'
    : 'Suspended.'
}

const daysSince = (at) => Math.floor((Date.now() / 1000 - at) / 86_400)
const countWords = (reports) => {
  const count = reports.length === 1 ? '1 report' : `${reports.length} reports`
  const days = daysSince(Math.min(...reports.map(({ created_at: at }) => at)))
  return days < 1 ? count : `${count}, the oldest ${days === 1 ? '1 day' : `${days} days`} ago`
}

/** All open reports of one post, which one act resolves. */
const reportLine = async (key, reports) => {
  const [{ event_id: event, room }] = reports
  const found = await get(`/api/events/${event}`).then(
    (data) => data.event,
    (error) => {
      if (error.code !== 'not_found') throw error
    },
  )
  const resolve = async (action) => {
    for (const { id } of reports)
      await send(key, { operation: 'report.resolve', target: id, data: { schema: 1, action } }).catch(unlessDone)
  }
  const why = make('input', { 'aria-label': 'Reason, public', placeholder: 'Reason, public', maxlength: '200' })
  const reasonNow = () => (why.value.trim() === '' ? 'Against the rules of this board.' : why.value.trim())
  const author = found?.author
  /** After an act that worked, the row can no longer be used. */
  const closing = (act) => async () => {
    const done = await act()
    for (const control of row.querySelectorAll('button, input')) control.remove()
    row.classList.add('done')
    return done
  }
  const row = make(
    'li',
    {},
    make(
      'div',
      { class: 'line' },
      ...(author === undefined ? [] : [person(author)]),
      `in ${room}`,
      make('span', { class: 'tag warm' }, countWords(reports)),
    ),
    make('p', {}, link(`/e/${event}`, visible((found?.text ?? goneWords(found)).slice(0, 300)))),
    ...(await Promise.all(reports.map(reportWords))),
    why,
    doing(
      [
        'Hide the post',
        closing(async () => {
          await send(key, { operation: 'room.hide', event_id: event, reason: reasonNow() }).catch(unlessDone)
          await resolve('hidden')
          return 'Hidden.'
        }),
      ],
      ...(author === undefined
        ? []
        : [
            [
              'Suspend the author',
              closing(async () => {
                const done = await suspend(key, author.id, reasonNow(), false)
                await resolve('suspended')
                return done
              }),
            ],
            [
              'Suspend and hide all posts',
              closing(async () => {
                const done = await suspend(key, author.id, reasonNow(), true)
                await resolve('suspended')
                return done
              }),
            ],
          ]),
      ['Nothing is wrong', closing(() => resolve('dismissed').then(() => 'Dismissed.'))],
    ),
  )
  return row
}

const reportsMax = 1_000
const postsAtOnce = 50
const reportsSection = async (key) => {
  const reports = await readAll(key, { operation: 'reports.list', kind: 'open' }, 'reports', reportsMax)
  if (reports.length === 0) return section('Reports', quiet('No open reports.'))
  const byPost = new Map()
  for (const each of reports) byPost.set(each.event_id, [...(byPost.get(each.event_id) ?? []), each])
  const waiting = [...byPost.values()]
  const list = make('ul', { class: 'rows' })
  const problem = make('span', { class: 'problem', role: 'alert' })
  const more = button('', async () => {
    problem.textContent = ''
    await showMore().catch((error) => {
      problem.textContent = said(error)
    })
  })
  const showMore = async () => {
    list.append(...(await Promise.all(waiting.slice(0, postsAtOnce).map((each) => reportLine(key, each)))))
    waiting.splice(0, postsAtOnce)
    more.textContent = `Show ${Math.min(waiting.length, postsAtOnce)} more of ${waiting.length}`
    more.hidden = waiting.length === 0
    announce(list)
  }
  await showMore()
  const count = reportsMax.toLocaleString('en-US')
  const rest =
    reports.length < reportsMax ? [] : [quiet(`Older reports appear when some of these ${count} are resolved.`)]
  return section('Reports', list, make('div', { class: 'actions' }, more, problem), ...rest)
}

const peopleSection = (key) => {
  const who = input('who', { required: '' })
  const reason = input('reason', { required: '', maxlength: '200' })
  const ending = input('who', { required: '' })
  return section(
    'People',
    form(
      [
        field('Suspend @handle or id', who),
        field('Reason, public', reason),
        checkbox('hiding', 'Hide all their posts'),
      ],
      'Suspend',
      async (given) => suspend(key, await identityOf(given.who.trim()), given.reason, given.hiding !== undefined),
    ),
    form([field('End the suspension of @handle or id', ending)], 'End the suspension', async (given) => {
      const target = await identityOf(given.who.trim())
      await send(key, { operation: 'identity.unsuspend', target, reason: 'The suspension is over.' })
      return 'It is over. What it hid is shown again.'
    }),
  )
}

/** The post or the room that this page was opened for. */
const [wanted, wantedRoom] = ['post', 'room'].map((name) => new URLSearchParams(location.search).get(name) ?? '')
const postInput = () => input('post', { required: '', placeholder: 'its address or id', value: wanted })
const wantedPost = async () => {
  const { event } = await get(`/api/events/${postIn(wanted)}`)
  const words = link(`/e/${event.event_id}`, visible((event.text ?? goneWords(event)).slice(0, 300)))
  return make('div', {}, make('div', { class: 'line' }, person(event.author), `in ${event.room}`), make('p', {}, words))
}

const postSection = (key) => {
  const reason = input('reason', { required: '', maxlength: '200' })
  const act = (operation, done) => async (given) => {
    await send(key, { operation, event_id: postIn(given.post), reason: given.reason })
    return done
  }
  const hidden = form(
    [field('Post', postInput()), field('Reason, public', reason)],
    'Hide',
    act('room.hide', 'Hidden.'),
  )
  const why = input('reason', { required: '', maxlength: '200' })
  const shown = form(
    [field('Hidden post', postInput()), field('Reason, public', why)],
    'Show again',
    act('room.restore', 'Shown again.'),
  )
  return section('Hide or show a post', hidden, shown)
}

const threadActs = {
  'Pin to the top': ['pin', { pinned: true }],
  Unpin: ['pin', { pinned: false }],
  Lock: ['lock', { locked: true }],
  Unlock: ['lock', { locked: false }],
}
const threadSection = (key) => {
  const choices = Object.keys(threadActs).map((words) => [words, words])
  return section(
    'Pin, lock or move a thread',
    form([field('Thread', postInput()), field('Action', select('act', choices))], 'Do it', async ({ post, act }) => {
      const [verb, data] = threadActs[act]
      await send(key, { operation: `thread.${verb}`, event_id: postIn(post), data: { schema: 1, ...data } })
    }),
    form(
      [
        field('Thread', postInput()),
        field('To the room', input('room', { required: '', maxlength: '64' })),
        field('Reason, public', input('reason', { maxlength: '200' })),
      ],
      'Move',
      async ({ post, room, reason }) => {
        const to = room.trim()
        await send(key, { operation: 'thread.move', event_id: postIn(post), reason, data: { schema: 1, to } })
        return make('span', {}, 'Moved: it is now listed in ', link(`/room/${to}`, to), '.')
      },
    ),
  )
}

/** The policy of a room, and its moderation log. */
const roomSection = (key) => {
  const name = input('room', { required: '', maxlength: '64', value: wantedRoom })
  const found = make('div', {})
  const open = form([field('Room', name)], 'Open', async ({ room }) => {
    const named = room.trim()
    // What is shown until now belongs to another room, or is older.
    found.replaceChildren()
    const lists = make('div', {})
    const told = make('p', { role: 'status' })
    const renew = async (words = '') => {
      told.textContent = words
      const [bans, { entries }] = await Promise.all([
        readAll(key, { operation: 'room.bans', room: named }, 'bans'),
        read(key, { operation: 'room.modlog', room: named, limit: 20 }),
      ])
      const hadFocus = lists.contains(document.activeElement)
      lists.replaceChildren(banned(key, named, bans, renew), await modlog(entries))
      announce(lists)
      if (hadFocus) focusOn(lists)
    }
    const [{ policy }, { room: about }] = await Promise.all([
      ...['room.policy.get', 'room.get'].map((operation) => read(key, { operation, room: named })),
      renew(),
    ])
    const isPrivate = about.visibility === 'private'
    found.replaceChildren(policyForm(key, named, policy, isPrivate), banForm(key, named, renew), told, lists)
    announce(found)
    return ' '
  })
  return section('Rooms', open, found)
}
const days = [
  ['', 'Until it is ended'],
  ['1', 'A day'],
  ['7', 'A week'],
  ['30', '30 days'],
]
const banForm = (key, room, renew) => {
  const who = input('who', { required: '' })
  const reason = input('reason', { required: '', maxlength: '200' })
  return form(
    [
      field('Ban @handle or id from this room', who),
      field('Reason, public', reason),
      field('For', select('days', days)),
    ],
    'Ban',
    async (given) => {
      const target = await identityOf(given.who.trim())
      const ttl = given.days === '' ? {} : { ttl: Number(given.days) * 86_400 }
      await send(key, { operation: 'room.ban', room, target, reason: given.reason, ...ttl })
      await renew().catch(() => {})
      return 'Banned: they can no longer write in this room.'
    },
  )
}
/** Banned people, each with a button that ends the ban. */
const banned = (key, room, bans, renew) =>
  rows(
    bans,
    ({ target, handle, reason, expires_at: end }) => [
      person({ id: target, handle }),
      make('span', { class: 'tag warm' }, 'banned'),
      ...(end === undefined ? [] : ['ends ', time(end)]),
      make('span', { class: 'quiet' }, visible(reason)),
    ],
    ({ target }, remove) => [
      [
        'End the ban',
        async () => {
          await send(key, { operation: 'room.unban', room, target })
          remove()
          await renew('The ban is over.').catch(() => {})
        },
      ],
    ],
  )
/** The subject of a log entry: a person, a post, or something else. */
const targetOf = (action, id) => {
  if (/^[0-9a-f]{64}$/.test(id)) return personAt(id)
  if (action === 'blob.delete') return 'a file'
  return /^[0-9a-f]{32}$/.test(id) ? link(`/e/${id}`, 'a post') : visible(id)
}
const modlog = async (entries) => {
  const lines = entries.map(async ({ action, actor, reason = '', target = '', created_at: at }) => {
    const about = make('div', { class: 'line' }, make('code', {}, action), person(actor), time(at))
    return make('li', {}, about, make('p', { class: 'quiet' }, await targetOf(action, target), ` ${visible(reason)}`))
  })
  return make('ul', { class: 'rows' }, ...(await Promise.all(lines)))
}

/** Lets an operator get a key for this page. */
const operatorSection = (isThere) => {
  const operate = async (key) => {
    await keys.put(key, 'operate')
    kept.set('operate', { key: key.publicKey })
    await build()
  }
  return section(
    'For the operator',
    make(
      'p',
      {},
      'The operator’s own key stays where it is. Make a key that may operate this board for a day at most, where that key is:',
    ),
    make(
      'pre',
      {},
      make(
        'code',
        {},
        `broadside delegate operate.json --key OPERATOR.json --url ${location.origin} --scopes board:read,board:moderate,board:operate --hours 8`,
      ),
    ),
    keyFileField(operate, 'Then use operate.json here ', 'Key file of the delegation'),
    ...(isThere
      ? [
          make(
            'p',
            {},
            button('Forget the operator’s key here', async () => {
              await keys.forget('operate')
              kept.set('operate')
              await build()
            }),
          ),
        ]
      : []),
  )
}

/** The key that acts here: the operator's for this page, if there is one. */
const actingKey = async () => (await keys.get('operate')) ?? (await keys.get())
/** Public half of the key that the page was built for. */
let builtFor

const build = async () => {
  const key = await actingKey()
  builtFor = key?.publicKey
  if (key === undefined) return place.replaceChildren(keyFirst('To moderate, '), operatorSection(false))
  const isOperating = (await keys.get('operate')) !== undefined
  const parts = [postSection(key), threadSection(key)]
  try {
    parts.unshift(await reportsSection(key), peopleSection(key))
  } catch (error) {
    if (!(error instanceof Refused)) throw error
    if (isOperating || error.code !== 'forbidden')
      parts.unshift(make('p', { class: 'problem', role: 'alert' }, said(error)))
  }
  if (wantedRoom === '') parts.push(roomSection(key))
  else parts.unshift(roomSection(key))
  if (wanted !== '') parts.unshift(await wantedPost().catch(() => quiet('There is no public post at this address.')))
  place.replaceChildren(...parts, operatorSection(isOperating))
  announce(place)
}
const show = showing(place, build)
/** Another tab made, changed or forgot a key. */
const renew = async () => {
  if ((await actingKey())?.publicKey !== builtFor) await show()
}
void show()
document.addEventListener('key-changed', () => void renew())
addEventListener('storage', ({ key }) => key === 'operate' && void renew())
