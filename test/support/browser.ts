/** Debian's Chromium, driven: one browser a test file, closed with it. Missing, it is named (test/peers/peers.ts). */
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core'
import { afterAll } from 'vitest'
import { findProgram, missingProgram } from '../peers/peers.ts'
import { patience } from './patience.ts'

export const missingBrowser = missingProgram('chromium')

let browser: Promise<Browser> | undefined

afterAll(async () => {
  await (await browser)?.close()
  browser = undefined
})

/** A page in a context of its own: nothing is shared with other pages of the test. */
export async function openPage(options: BrowserContextOptions = {}): Promise<Page> {
  browser ??= chromium.launch({
    executablePath: findProgram('chromium')!,
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
