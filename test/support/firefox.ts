/** Debian's Firefox, automated over WebDriver BiDi: one browser for each color scheme, each with its own profile. */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Browser, launch, type Page } from 'puppeteer-core'
import { expect } from 'vitest'
import { findProgram, missingProgram } from '../peers/peers.ts'
import { afterEachFile } from './after-file.ts'
import { patience } from './patience.ts'

export const missingFirefox = missingProgram('firefox-esr')
export const schemes = ['light', 'dark'] as const
type Scheme = (typeof schemes)[number]

const browsers = new Map<Scheme, Promise<Browser>>()
let downloads: string | undefined

afterEachFile(async () => {
  for (const each of browsers.values()) await (await each).close()
  browsers.clear()
  if (downloads !== undefined) rmSync(downloads, { recursive: true, force: true })
  downloads = undefined
})

function downloadsOf(scheme: Scheme): string {
  downloads ??= mkdtempSync(join(tmpdir(), 'broadside-firefox-'))
  return join(downloads, scheme)
}

function browserOf(scheme: Scheme): Promise<Browser> {
  const open = browsers.get(scheme)
  if (open !== undefined) return open
  const begun = launch({
    browser: 'firefox',
    executablePath: findProgram('firefox-esr')!,
    timeout: patience.timeout,
    protocolTimeout: patience.timeout,
    extraPrefsFirefox: {
      'layout.css.prefers-color-scheme.content-override': schemes.indexOf(scheme) === 0 ? 1 : 0,
      'browser.download.folderList': 2,
      'browser.download.dir': downloadsOf(scheme),
      'browser.download.alwaysOpenPanel': false,
    },
  })
  browsers.set(scheme, begun)
  return begun
}

/** A page in its own context. */
export async function openFirefox(scheme: Scheme, width: number): Promise<Page> {
  const context = await (await browserOf(scheme)).createBrowserContext()
  const page = await context.newPage()
  page.setDefaultTimeout(patience.timeout)
  await page.setViewport({ width, height: 900 })
  return page
}

/** The only file that was saved, once it exists. */
export async function savedFile(scheme: Scheme): Promise<string> {
  const folder = downloadsOf(scheme)
  const whole = () =>
    readdirSync(folder).filter((name) => name.endsWith('.json') && readFileSync(join(folder, name)).length > 0)
  await expect.poll(() => whole().length, patience).toBe(1)
  return join(folder, whole()[0]!)
}

type Role = 'button' | 'link' | 'textbox' | 'checkbox'
/** The element with this accessible name. */
export const withName = (role: Role, name: string) => `::-p-aria([name="${name}"][role="${role}"])`
/** An element that contains these words. */
export const withText = (words: string) => `::-p-text(${words})`
