/**
 * What every page does where there is a script: the theme that the reader wants (kept in this browser, no cookie), times in the
 * reader's own words, and buttons that copy.
 */

const root = document.documentElement

/** @param {string | null} theme 'light', 'dark', or null: as the system has it */
const setTheme = (theme) => {
  if (theme === null) delete root.dataset.theme
  else root.dataset.theme = theme
  try {
    if (theme === null) localStorage.removeItem('theme')
    else localStorage.setItem('theme', theme)
  } catch {
    // A browser that keeps nothing still changes the page that is open.
  }
}

const button = document.getElementById('theme')
if (button !== null) {
  const order = { auto: 'light', light: 'dark', dark: 'auto' }
  const words = { auto: 'Theme: auto', light: 'Theme: light', dark: 'Theme: dark' }
  const now = () => root.dataset.theme ?? 'auto'
  button.textContent = words[now()]
  button.hidden = false
  button.addEventListener('click', () => {
    const next = order[now()]
    setTheme(next === 'auto' ? null : next)
    button.textContent = words[now()]
  })
}

const full = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'short' })
const near = new Intl.RelativeTimeFormat(undefined, { numeric: 'auto' })
const steps = [
  [60, 'second', 1],
  [3_600, 'minute', 60],
  [86_400, 'hour', 3_600],
  [7 * 86_400, 'day', 86_400],
]

/** @param {HTMLTimeElement} element */
const localise = (element) => {
  const at = new Date(element.dateTime)
  if (Number.isNaN(at.getTime())) return
  const seconds = (at.getTime() - Date.now()) / 1000
  const step = steps.find(([below]) => Math.abs(seconds) < below)
  element.textContent = step === undefined ? full.format(at) : near.format(Math.round(seconds / step[2]), step[1])
  element.title = `${full.format(at)} (${element.dateTime})`
}

const localiseAll = () => {
  for (const element of document.querySelectorAll('time[datetime]')) localise(element)
}
localiseAll()
setInterval(localiseAll, 30_000)
document.addEventListener('post-added', ({ target }) => {
  for (const element of target.querySelectorAll('time[datetime]')) localise(element)
})

/** `data-copy`: the text itself; `data-copy-from`: an address whose answer is copied. */
for (const copy of document.querySelectorAll('button[data-copy], button[data-copy-from]')) {
  copy.hidden = false
  const words = copy.textContent
  copy.addEventListener('click', async () => {
    try {
      const { copy: text, copyFrom } = copy.dataset
      await navigator.clipboard.writeText(text ?? (await (await fetch(copyFrom)).text()))
      copy.textContent = 'Copied'
    } catch {
      copy.textContent = 'This browser does not let a page copy'
    }
    setTimeout(() => {
      copy.textContent = words
    }, 2_000)
  })
}

/** A filter that is chosen from a list needs no button, but has one without a script. */
for (const form of document.querySelectorAll('form[data-at-once]'))
  form.addEventListener('change', ({ target }) => {
    if (target instanceof HTMLSelectElement) form.requestSubmit()
  })

/** Who has a key here is shown in the masthead; who has none loads nothing for it. */
try {
  if (localStorage.getItem('me') !== null) void import('./me.js')
} catch {
  // A browser that keeps nothing has no key either.
}
