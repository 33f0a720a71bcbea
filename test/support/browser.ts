/**
 * Debian's Chromium, automated: one browser per test file, closed with it. If it is missing, tests say so (test/peers/peers.ts).
 *
 * It is the headless build: twelve pages cost it 3 s of processor time where the desktop build takes 8.
 */
import { join } from 'node:path'
import { type Browser, type BrowserContextOptions, chromium, type Locator, type Page } from 'playwright-core'
import type { Signer } from '../../src/format/signer.ts'
import { findProgram, missingProgram } from '../peers/peers.ts'
import { afterEachFile } from './after-file.ts'
import type { Board } from './board-process.ts'
import { seedOf } from './client.ts'
import { patience } from './patience.ts'

export const browserProgram = 'chromium-headless-shell'
export const missingBrowser = missingProgram(browserProgram)

let browser: Promise<Browser> | undefined

afterEachFile(async () => {
  await (await browser)?.close()
  browser = undefined
})

/** A page in its own context: nothing is shared with other pages of the test. */
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

/** Problems of the page: script errors, policy violations, dialogs. Filled as they happen. */
export function collectErrors(page: Page): string[] {
  const errors: string[] = []
  page.on('pageerror', (error) => errors.push(`error: ${error.message}`))
  page.on('console', (message) => {
    if (message.type() === 'error') errors.push(`console: ${message.text()}`)
  })
  page.on('dialog', (dialog) => {
    errors.push(`dialog: ${dialog.message()}`)
    void dialog.dismiss()
  })
  return errors
}

/** A person opens the file of their key on a board's page for it. */
export async function useKey(page: Page, { address }: Pick<Board, 'address'>, signer: Signer): Promise<void> {
  await page.goto(`${address}/account`)
  await page.getByLabel('Key file').setInputFiles(keyFileOf(signer))
  await page.getByRole('heading', { name: 'Your profile' }).waitFor()
}

/** The key file of a person, for a field that takes files. */
export function keyFileOf(signer: Signer) {
  const { publicKey: public_key, id } = signer
  const seed = seedOf(signer).toString('base64url')
  const text = JSON.stringify({ type: 'broadside-key', public_key, id, seed })
  return { name: 'key.json', mimeType: 'application/json', buffer: Buffer.from(text) }
}

export function button(page: Page, name: string): Locator {
  return page.getByRole('button', { name, exact: true })
}

/** If a person wants pictures of these pages, they are saved in this folder. */
export async function saveScreenshot(page: Page, name: string, isWhole = false): Promise<void> {
  const place = process.env.SCREENSHOTS
  if (place !== undefined) await page.screenshot({ path: join(place, `${name}.png`), fullPage: isWhole })
}
