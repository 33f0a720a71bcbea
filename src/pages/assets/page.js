/**
 * What every page does if scripts run: the reader's theme (stored in this browser, no cookie), times in the reader's locale, and copy
 * buttons.
 */

const root = document.documentElement

/** @param {string | null} theme 'light', 'dark', or null for the system's theme */
const setTheme = (theme) => {
  if (theme === null) delete root.dataset.theme
  else root.dataset.theme = theme
  try {
    if (theme === null) localStorage.removeItem('theme')
    else localStorage.setItem('theme', theme)
  } catch {
    // A browser without storage still changes the open page.
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

/** `data-copy`: the text itself; `data-copy-from`: an address whose content is copied. */
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

/** A filter that is a selection submits itself; its button is for browsers without scripts. */
for (const form of document.querySelectorAll('form[data-at-once]'))
  form.addEventListener('change', ({ target }) => {
    if (target instanceof HTMLSelectElement) form.requestSubmit()
  })

/** Shows the person in the masthead once there is a key in this browser; otherwise nothing is loaded. */
const greet = () => {
  try {
    if (localStorage.getItem('me') !== null) void import('./me.js')
  } catch {
    // A browser without storage has no key either.
  }
}
greet()
addEventListener('storage', greet)
