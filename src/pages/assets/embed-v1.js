/**
 * A live room on any web page:
 *
 *   <script src="https://BOARD/embed/v1.js" data-room="lobby" async></script>
 *
 * data-room   name of a public room (required)
 * data-page   only this page of the room
 * data-limit  posts shown, 1 to 100; default 20
 * data-theme  light or dark; default: as the reader's system
 *
 * Everything is in a shadow root after the script element, or at the end of the page if the script is in its head. Texts are untrusted: they
 * only ever become text nodes, and characters that hide or reorder text are shown by their code points. After each reconnection the
 * current list is fetched from the board, so that posts removed in the meantime are removed here. A hidden page is not updated until it is
 * visible again. The style is a constructed sheet, so a page whose policy forbids inline styles needs no exception; it only has to allow
 * this board in script-src and connect-src.
 */
;(() => {
  const script = document.currentScript
  if (!script)
    return console.error(
      'Broadside: the embed script only runs from a script element of the page, without type="module".',
    )
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
  // The log is around the list, so that screen readers still announce the list as a list.
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
  /** Browsers show nothing that is in the head, nor after an element that is no longer in the page. */
  const showAtEnd = () => {
    console.warn(
      `Broadside: the script for the room ${where} is not in the body of the page, so the room is shown at its end. Move the script to where the room should be.`,
    )
    document.body.append(host)
  }
  if (document.body?.contains(script)) script.after(host)
  else if (document.readyState === 'loading') document.addEventListener('DOMContentLoaded', showAtEnd)
  else showAtEnd()

  /** The displayed state of each post by id; `at`: the value of `told` when it was received. */
  const shown = new Map()
  /** Counts the messages of the stream and the requested lists. */
  let told = 0
  /** Counts news about posts that are not shown: a list requested before such news may be older. */
  let unheard = 0

  const fill = (post, event) => {
    const gone = typeof event.text !== 'string'
    post.text.textContent = gone ? `(${event.reason ?? 'gone'})` : visible(event.text)
    post.text.className = gone ? 'gone' : ''
    post.edited.hidden = event.supersedes === undefined && event.versions === undefined
    post.ends = gone ? undefined : event.expires_at
    post.at = told
  }

  /** Updates a post that is shown; inserts any other at its place in the list. */
  const show = (event) => {
    const known = shown.get(event.supersedes ?? event.event_id)
    if (known) return fill(known, event)
    // A version of a post that is not shown is not a separate post, and removed posts are not listed.
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
  /** Fetches the current list. News about a post that the stream delivered in the meantime is newer. */
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
    // A post that is shown but not listed was removed, and keeps its place; or this board has never heard of it.
    for (const [id, post] of shown) {
      if (listed.has(id) || post.text.className === 'gone' || !isOld(post)) continue
      const { answer: one, data: found } = await json(`/api/events/${id}`)
      if (one.ok && isOld(post)) fill(post, found.event)
      if (one.status !== 400) continue
      post.item.remove()
      shown.delete(id)
    }
  }

  /**
   * The open streams of all embeds of this board on the page. A browser may have only six connections to a host, and if streams take all of
   * them, no list can be fetched. Embeds beyond the limit fetch their list regularly instead.
   */
  const shared = Symbol.for(`streams of ${board}`)
  globalThis[shared] ??= new Set()
  const streams = globalThis[shared]
  const streamsMax = 4
  const listEveryMs = 15_000
  let stream
  let timer
  let pause = 1_000
  const leave = () => {
    clearTimeout(timer)
    stream?.close()
    streams.delete(stream)
  }
  const followIn = (waitMs) => {
    clearTimeout(timer)
    timer = setTimeout(follow, waitMs)
  }
  const follow = () => {
    leave()
    if (document.visibilityState === 'hidden') return
    if (streams.size >= streamsMax) return void fetchList()
    // Earlier posts are in the list. After a lost connection, the browser itself requests what it missed.
    const opened = new EventSource(`${board}/tail/${encodeURIComponent(room)}?last=0`)
    stream = opened
    streams.add(opened)
    opened.onopen = () => {
      pause = 1_000
      state.textContent = 'live'
      renew()
    }
    const renew = () => {
      const again = () => opened.readyState === EventSource.OPEN && renew()
      past().catch(() => setTimeout(again, 10_000))
    }
    const hear = ({ data }) => {
      told++
      show(JSON.parse(data))
    }
    opened.onmessage = hear
    opened.addEventListener('revision', hear)
    opened.onerror = () => {
      state.textContent = 'connecting'
      // The browser reconnects on its own after a lost connection, but not after an answer that is not a stream.
      if (opened.readyState === EventSource.CLOSED) failed()
    }
  }
  const failed = () => {
    leave()
    if (shown.size === 0) state.textContent = 'this room cannot be read here'
    followIn(pause)
    pause = Math.min(60_000, pause * 2)
  }
  const fetchList = () =>
    past().then(() => {
      pause = 1_000
      state.textContent = 'updated every 15 s'
      followIn(listEveryMs)
    }, failed)
  setInterval(() => {
    for (const post of shown.values()) if (post.ends * 1000 <= Date.now()) fill(post, { reason: 'expired' })
  }, 1_000)
  if (room === '') state.textContent = 'data-room is missing: it names the room to show'
  else {
    follow()
    document.addEventListener('visibilitychange', follow)
  }
})()
