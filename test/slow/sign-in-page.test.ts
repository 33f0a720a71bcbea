/** A person signs in to a program from the browser: with the key that the browser holds, and with a signature made elsewhere. */
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { opensslSigner } from '../../src/cli/sign.ts'
import { skipNote, skipWithout } from '../peers/peers.ts'
import { boardDirectory, startBoard } from '../support/board-process.ts'
import { button, collectErrors, missingBrowser, openPage } from '../support/browser.ts'
import { callTool, OauthClient, redirectUri, type Tokens } from '../support/oauth-client.ts'

vi.setConfig({ testTimeout: 900_000, hookTimeout: 900_000 })

let address: string
let oauth: OauthClient
/** Not markup, and too long for a line of a phone. */
const name = `A <b>bold</b> ${'n'.repeat(46)}`

beforeAll(async () => {
  address = (await startBoard({ directory: boardDirectory() })).address
  oauth = new OauthClient(address)
  await oauth.register({ client_name: name })
})

/** The program that waits on this device, called with the address that the browser is redirected to. */
let cameBack: (url: URL) => void = () => {}
const program = createServer((request, response) => {
  const url = new URL(request.url!, redirectUri)
  if (url.pathname === new URL(redirectUri).pathname) cameBack(url)
  response.end('back at the program')
})

function waitingProgram(): Promise<URL> {
  return new Promise((resolve) => {
    cameBack = resolve
  })
}

beforeAll(async () => {
  const { hostname, port } = new URL(redirectUri)
  program.listen(Number(port), hostname)
  await once(program, 'listening')
})
afterAll(() => {
  program.closeAllConnections()
  program.close()
})

async function identityBehind(back: URL, verifier: string): Promise<string> {
  expect(back.searchParams.get('iss')).toBe(address)
  const { access_token } = (await oauth.exchange(back.searchParams.get('code')!, verifier)).body as unknown as Tokens
  const { result } = await callTool(address, 'whoami', {}, access_token)
  return (result.structuredContent as { identity: string }).identity
}

describe.skipIf(skipWithout(missingBrowser))(`in Chromium${skipNote(missingBrowser)}`, () => {
  test('with the key of this browser it takes one click to return to the program', async () => {
    const page = await openPage()
    const complaints = collectErrors(page)
    await page.goto(`${address}/account`)
    await page.getByLabel('Save a copy of it as a file').uncheck()
    await button(page, 'Make a key').click()
    const ownId = () => page.evaluate<string | undefined>("JSON.parse(localStorage.getItem('me') ?? '{}').id")
    await expect.poll(ownId).toMatch(/^[0-9a-f]{64}$/)
    const own = await ownId()
    const came = waitingProgram()
    const { url, verifier } = oauth.authorize()
    await page.goto(url.href)
    expect(await page.locator('#sign-in').textContent()).toContain(name)
    expect(await page.locator('#sign-in').textContent()).toContain('127.0.0.1:3999')
    await button(page, 'Sign with the key in this browser').click()
    expect(await identityBehind(await came, verifier)).toBe(own)
    // A board knows nobody before they have written: it answers 400 to them, which a browser logs.
    expect(complaints.filter((each) => !/400 \(Bad Request\)/.test(each))).toEqual([])
  })

  test('a visitor without a key makes one in another tab; once it is forgotten there, it signs no one in', async () => {
    const page = await openPage()
    const came = waitingProgram()
    const { url, verifier } = oauth.authorize()
    await page.goto(url.href)
    const opened = page.context().waitForEvent('page')
    await page.getByRole('link', { name: 'Make one or open its file' }).click()
    const other = await opened
    await other.getByLabel('Save a copy of it as a file').uncheck()
    await button(other, 'Make a key').click()
    await other.getByRole('heading', { name: 'Your profile' }).waitFor()
    await button(page, 'Sign with the key in this browser').waitFor()
    const own: string = await page.evaluate(() => JSON.parse(localStorage.getItem('me')!).id)
    await page.locator('#who', { hasText: own.slice(0, 8) }).waitFor()
    expect(await page.getByText('This browser has no key.').isVisible()).toBe(false)

    const asleep = await page.context().newPage()
    await asleep.addInitScript("addEventListener('storage', (event) => event.stopImmediatePropagation(), true)")
    await asleep.goto(oauth.authorize().url.href)
    await button(asleep, 'Sign with the key in this browser').waitFor()
    await button(other, 'Forget this key on this device').click()
    await button(other, 'Forget it').click()
    await page.getByText('This browser has no key.').waitFor()
    await button(asleep, 'Sign with the key in this browser').click()
    await asleep.getByText('the key of this browser was changed in another tab').waitFor()
    await asleep.getByText('This browser has no key.').waitFor()

    await button(other, 'Make a key').click()
    await other.getByRole('heading', { name: 'Your profile' }).waitFor()
    await button(page, 'Sign with the key in this browser').click()
    expect(await identityBehind(await came, verifier)).not.toBe(own)
    await page.context().close()
  })

  test('a signature of nothing is refused in words that name the button, which keeps the focus', async () => {
    const page = await openPage()
    await page.goto(oauth.authorize().url.href)
    await page.getByLabel('Your public key').fill(opensslSigner(randomBytes(32)).publicKey)
    await page.getByLabel('The signature').fill('x'.repeat(86))
    await button(page, 'Sign in').focus()
    await page.keyboard.press('Enter')
    await page.getByText('press “Show what to sign” first').waitFor()
    expect(await page.locator(':focus').textContent()).toBe('Sign in')
    await page.context().close()
  })

  test('with a key elsewhere the bytes are shown and the signature is pasted; and it can be declined', async () => {
    const page = await openPage({ viewport: { width: 390, height: 844 } })
    const complaints = collectErrors(page)
    const signer = opensslSigner(randomBytes(32))
    const came = waitingProgram()
    const { url, verifier } = oauth.authorize()
    await page.goto(url.href)
    await page.getByLabel('Your public key').fill(signer.publicKey)
    await button(page, 'Show what to sign').click()
    await expect.poll(() => page.locator('#bytes').inputValue()).toContain('"operation":"delegation.create"')
    const bytes = await page.locator('#bytes').inputValue()
    await page.getByLabel('The signature').fill(signer.sign(Buffer.from(bytes)).toString('base64url'))
    const width = await page.evaluate(() => {
      const { document } = globalThis as unknown as { document: { documentElement: { scrollWidth: number } } }
      return document.documentElement.scrollWidth
    })
    expect(width).toBe(390)
    await button(page, 'Sign in').click()
    expect(await identityBehind(await came, verifier)).toBe(signer.id)
    const other = await openPage()
    const declined = waitingProgram()
    await other.goto(oauth.authorize().url.href)
    await button(other, 'Do not sign in').click()
    expect((await declined).searchParams.get('error')).toBe('access_denied')
    expect(complaints).toEqual([])
  })
})
