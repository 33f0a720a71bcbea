/** A program without a browser that signs in: follows the redirects with a cookie jar, signs the challenge, gets the code. */
import type { Signer } from '../../src/cli/sign.ts'

export class CookieJar {
  readonly #cookies = new Map<string, { value: string; path: string }>()

  header(path: string): string {
    return [...this.#cookies]
      .filter(([, { path: own }]) => path.startsWith(own))
      .map(([name, { value }]) => `${name}=${value}`)
      .join('; ')
  }

  store(response: Response): void {
    for (const line of response.headers.getSetCookie()) {
      const [pair = '', ...rest] = line.split(';')
      const [name = '', value = ''] = pair.split('=')
      const path = rest.map((each) => /^ *path=(.*)$/i.exec(each)?.[1]).find((each) => each !== undefined) ?? '/'
      if (value === '') this.#cookies.delete(name)
      else this.#cookies.set(name, { value, path })
    }
  }

  async fetch(url: URL, init: RequestInit = {}): Promise<Response> {
    const headers = new Headers(init.headers)
    const cookie = this.header(url.pathname)
    if (cookie !== '') headers.set('cookie', cookie)
    const response = await fetch(url, { ...init, headers, redirect: 'manual' })
    this.store(response)
    return response
  }
}

export type Interaction = { readonly jar: CookieJar; readonly url: URL; readonly body: Record<string, unknown> }

/** From an authorize URL to the pending sign-in; the answer itself if there is none. */
export async function beginSignIn(authorize: URL, publicKey?: string): Promise<Interaction | Response> {
  const jar = new CookieJar()
  const response = await jar.fetch(authorize)
  const next = response.headers.get('location')
  if (next === null) return response
  const url = new URL(next, authorize)
  if (!url.pathname.startsWith('/oauth/interaction/')) return response
  const withKey = new URL(url)
  if (publicKey !== undefined) withKey.searchParams.set('public_key', publicKey)
  const body = (await (
    await jar.fetch(withKey, { headers: { accept: 'application/json' } })
  ).json()) as Interaction['body']
  return { jar, url, body }
}

/** POSTs the signature (or what is given in its place). */
export async function submitSignature({ jar, url }: Interaction, body: object): Promise<Response> {
  return jar.fetch(url, {
    method: 'POST',
    headers: { accept: 'application/json', 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
}

/** The whole sign-in: returns where the client's user is redirected, with code and state. */
export async function signIn(authorize: URL, signer: Signer): Promise<URL> {
  const begun = await beginSignIn(authorize, signer.publicKey)
  if (begun instanceof Response) throw new Error(`no sign-in: ${begun.status} ${await begun.text()}`)
  const challenge = String(begun.body.challenge)
  const signature = signer.sign(Buffer.from(challenge)).toString('base64url')
  const response = await submitSignature(begun, { public_key: signer.publicKey, signature })
  const { location } = (await response.json()) as { location?: string }
  if (location === undefined) throw new Error(`not signed in: ${response.status}`)
  const back = await begun.jar.fetch(new URL(location, authorize))
  const target = back.headers.get('location')
  if (target === null) throw new Error(`no way back: ${back.status} ${await back.text()}`)
  return new URL(target)
}
