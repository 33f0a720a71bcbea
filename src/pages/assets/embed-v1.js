/**
 * A live room on anybody's page:
 *
 *   <script src="https://BOARD/embed/v1.js" data-room="lobby" async></script>
 *
 * data-room   name of a public room (needed)
 * data-page   only this page of the room
 * data-limit  posts shown, 1 to 100; 20 when left out
 * data-theme  light or dark; as the reader's system when left out
 *
 * All of it stands in a shadow root behind the script element. Texts are written by strangers: they become text nodes and
 * nothing else, and characters that hide or turn text are shown by their numbers. What was taken back while the connection was gone
 * is taken back here when it is there again: each time the board is asked for the list as it is then. The style is a constructed sheet, so that a
 * page whose policy forbids inline styles needs no exception; it only has to allow this board in script-src and connect-src.
 */
;(() => {
  const script = document.currentScript
  if (!script) return
  const board = new URL(script.src).origin
  const { room = '', page = '', theme = '' } = script.dataset
  const asked = Math.trunc(Number(script.dataset.limit ?? 20))
  const limit = Math.min(100, Math.max(1, Number.isNaN(asked) ? 20 : asked))

  const sheet = new CSSStyleSheet()
  sheet.replaceSync(`
    :host { display: block; color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif; --ink: #1c2024; --soft: #60646c;
      --line: #d9d9e0; --paper: #fff; --link: #0b5cad }
    @media (prefers-color-scheme: dark) { :host { --ink: #edeef0; --soft: #b0b4ba; --line: #3a3f47; --paper: #18191b; --link: #8ec8ff } }
    :host([data-theme=light]) { color-scheme: light; --ink: #1c2024; --soft: #60646c; --line: #d9d9e0; --paper: #fff; --link: #0b5cad }
    :host([data-theme=dark]) { color-scheme: dark; --ink: #edeef0; --soft: #b0b4ba; --line: #3a3f47; --paper: #18191b; --link: #8ec8ff }
    section { border: 1px solid var(--line); border-radius: 8px; background: var(--paper); color: var(--ink); overflow: hidden }
    header, footer { display: flex; overflow-wrap: anywhere; gap: 1em; justify-content: space-between; padding: .5em .9em; color: var(--soft); font-size: .87em }
    header { border-bottom: 1px solid var(--line) } header b { color: var(--ink) }
    footer { border-top: 1px solid var(--line) }
    .log { max-height: 28em; overflow-y: auto } ol { list-style: none; margin: 0; padding: 0 }
    li { padding: .6em .9em } li + li { border-top: 1px solid var(--line) }
    .about { display: flex; flex-wrap: wrap; gap: 0 .7em; color: var(--soft); font-size: .87em }
    .author { color: var(--ink); font-weight: 600 }
    p { margin: .1em 0 0; white-space: pre-wrap; overflow-wrap: anywhere; unicode-bidi: plaintext }
    .gone { color: var(--soft); font-style: italic }
    a { color: var(--link); text-decoration: none } a:hover { text-decoration: underline }
    a:focus-visible, .log:focus-visible { outline: 2px solid var(--link); outline-offset: -2px }
  `)

  /** An element with these attributes, around text or elements. */
  const make = (name, attributes, ...inside) => {
    const element = document.createElement(name)
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value)
    element.append(...inside)
    return element
  }
  const link = (path, ...inside) =>
    make('a', { href: board + path, target: '_blank', rel: 'nofollow noopener noreferrer' }, ...inside)
  const visible = (text) =>
    text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (char) =>
      '\n\t\u200d'.includes(char) ? char : `\\u{${char.codePointAt(0).toString(16)}}`,
    )

  const host = make('div', theme === '' ? {} : { 'data-theme': theme })
  const root = host.attachShadow({ mode: 'open' })
  root.adoptedStyleSheets = [sheet]
  const state = make('span', { role: 'status' }, 'connecting')
  const where = page === '' ? room : `${room} / ${page}`
  const list = make('ol', {})
  // The log is around the list, which stays one to who hears it.
  const log = make('div', { class: 'log', tabindex: '0', role: 'log', 'aria-label': `Posts in ${where}` }, list)
  root.append(
    make(
      'section',
      { 'aria-label': `Room ${where}` },
      make('header', {}, make('b', {}, `#${where}`), state),
      log,
      make('footer', {}, link(`/room/${encodeURIComponent(room)}`, 'Open the room'), 'each post signed and provable'),
    ),
  )
  script.after(host)

  /** What is shown of each post, by its id; `at`: when it was told, counted in `told`. */
  const shown = new Map()
  /** What was heard of the stream, and lists that were asked for. */
  let told = 0
  /** News of posts that are not shown: a list that was asked for before them may be older. */
  let unheard = 0

  const fill = (post, event) => {
    const gone = typeof event.text !== 'string'
    post.text.textContent = gone ? `(${event.reason ?? 'gone'})` : visible(event.text)
    post.text.className = gone ? 'gone' : ''
    post.edited.hidden = event.supersedes === undefined && event.versions === undefined
    post.ends = gone ? undefined : event.expires_at
    post.at = told
  }

  /** A post that is shown is told anew; one that is not gets its place among the others. */
  const show = (event) => {
    const known = shown.get(event.supersedes ?? event.event_id)
    if (known) return fill(known, event)
    // A version of something that is not shown is no post of its own, and what was taken back before is in no list.
    if (event.supersedes || event.hidden) {
      unheard++
      return
    }
    if (page !== '' && event.page !== page) return
    const { author, created_at: at, event_id: id } = event
    const time = new Date(at * 1000)
    const edited = make('span', {}, 'edited')
    const text = make('p', {})
    const about = make(
      'div',
      { class: 'about' },
      make('span', { class: 'author', title: author.id }, visible(author.handle ?? author.id.slice(0, 8))),
      link(`/e/${id}`, make('time', { datetime: time.toISOString() }, time.toLocaleString())),
      edited,
      link(`/e/${id}/proof`, 'proof'),
    )
    const post = { item: make('li', {}, about, text), text, edited, seq: event.seq }
    fill(post, event)
    const atEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 40
    const next = [...shown.values()].filter(({ seq }) => seq > post.seq).sort((a, b) => a.seq - b.seq)[0]
    list.insertBefore(post.item, next ? next.item : null)
    shown.set(id, post)
    while (list.children.length > limit) list.firstChild.remove()
    for (const [name, { item }] of shown) if (item.parentNode !== list) shown.delete(name)
    if (atEnd) log.scrollTop = log.scrollHeight
  }

  const json = async (path) => {
    const answer = await fetch(board + path, { credentials: 'omit', referrerPolicy: 'no-referrer' })
    return { answer, data: (await answer.json()).data }
  }
  /** The list as the board has it now. Where the stream has told of a post meanwhile, that is newer. */
  const past = async (attempts = 3) => {
    const begun = ++told
    const isOld = (post) => !post || post.at <= begun
    const query = new URLSearchParams({ room, limit, ...(page === '' ? {} : { page }) })
    const before = unheard
    const { answer, data } = await json(`/api/events?${query}`)
    if (answer.ok && unheard !== before && attempts > 1) return past(attempts - 1)
    if (!answer.ok) throw new Error(`${answer.status}`)
    const listed = new Set(data.events.map(({ event_id: id }) => id))
    for (const event of data.events) if (isOld(shown.get(event.event_id))) show(event)
    // What is shown and not listed was taken back, and keeps its place; or this board has never heard of it.
    for (const [id, post] of shown) {
      if (listed.has(id) || post.text.className === 'gone' || !isOld(post)) continue
      const { answer: one, data: found } = await json(`/api/events/${id}`)
      if (one.ok && isOld(post)) fill(post, found.event)
      if (one.status !== 400) continue
      post.item.remove()
      shown.delete(id)
    }
  }

  let pause = 1_000
  const follow = () => {
    // What was posted before stands in the list; on a connection that was cut the browser itself asks for what it missed.
    const stream = new EventSource(`${board}/tail/${encodeURIComponent(room)}?last=0`)
    stream.onopen = () => {
      pause = 1_000
      state.textContent = 'live'
      renew()
    }
    const renew = () => {
      const again = () => stream.readyState === EventSource.OPEN && renew()
      past().catch(() => setTimeout(again, 10_000))
    }
    const hear = ({ data }) => {
      told++
      show(JSON.parse(data))
    }
    stream.onmessage = hear
    stream.addEventListener('revision', hear)
    stream.onerror = () => {
      state.textContent = 'connecting'
      // The browser comes back by itself after a cut connection, but not after an answer that was no stream.
      if (stream.readyState !== EventSource.CLOSED) return
      if (shown.size === 0) state.textContent = 'this room cannot be read here'
      setTimeout(follow, pause)
      pause = Math.min(60_000, pause * 2)
    }
  }
  setInterval(() => {
    for (const post of shown.values()) if (post.ends * 1000 <= Date.now()) fill(post, { reason: 'expired' })
  }, 1_000)
  if (room === '') state.textContent = 'data-room is missing: it names the room to show'
  else follow()
})()
