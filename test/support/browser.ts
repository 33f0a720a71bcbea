/**
 * Debian's Chromium, driven: one browser a test file, closed with it. Missing, it is named (test/peers/peers.ts).
 *
 * It is the build without windows: twelve pages cost it 3 s of processor time where the one for a desktop takes 8.
 */
import { join } from 'node:path'
import { type Browser, type BrowserContextOptions, chromium, type Locator, type Page } from 'playwright-core'
import { findProgram, missingProgram } from '../peers/peers.ts'
import { afterEachFile } from './after-file.ts'
import { patience } from './patience.ts'

export const browserProgram = 'chromium-headless-shell'
export const missingBrowser = missingProgram(browserProgram)

let browser: Promise<Browser> | undefined

afterEachFile(async () => {
  await (await browser)?.close()
  browser = undefined
})

/** A page in a context of its own: nothing is shared with other pages of the test. */
export async function openPage(options: BrowserContextOptions = {}): Promise<Page> {
  browser ??= chromium.launch({
    executablePath: findProgram(browserProgram)!,
    args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
    timeout: patience.timeout,
  })
  const context = await (await browser).newContext(options)
  context.setDefaultTimeout(patience.timeout)
  return context.newPage()
}

/** What the page did that nobody asked for: errors of scripts, refusals of its policy, dialogs. Filled as it happens. */
export function complaintsOf(page: Page): string[] {
  const heard: string[] = []
  page.on('pageerror', (error) => heard.push(`error: ${error.message}`))
  page.on('console', (message) => {
    if (message.type() === 'error') heard.push(`console: ${message.text()}`)
  })
  page.on('dialog', (dialog) => {
    heard.push(`dialog: ${dialog.message()}`)
    void dialog.dismiss()
  })
  return heard
}

export function button(page: Page, name: string): Locator {
  return page.getByRole('button', { name, exact: true })
}

/** Where a person looks at pictures of these pages, they are put in this folder. */
export async function picture(page: Page, name: string, isWhole = false): Promise<void> {
  const place = process.env.SCREENSHOTS
  if (place !== undefined) await page.screenshot({ path: join(place, `${name}.png`), fullPage: isWhole })
}
