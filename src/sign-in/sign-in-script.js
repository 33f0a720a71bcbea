/**
 * Signs a sign-in in the browser: with the key of this browser, or with a signature that was made elsewhere. Only the signature
 * leaves the page.
 */
import { encoder, keys, nameOf, perform, sign } from './board.js'
import { me } from './me.js'

const place = document.getElementById('sign-in')
const at = (id) => document.getElementById(id)
const say = (words) => {
  at('said').textContent = words
}

const address = `/oauth/interaction/${place.dataset.uid}`
const asJson = { accept: 'application/json' }

const ask = async (response) => {
  const answer = await response.json()
  if (!response.ok) throw new Error(answer.error_description ?? answer.error ?? 'the board refused this')
  return answer
}
const challengeFor = async (publicKey) =>
  (await ask(await fetch(`${address}?public_key=${encodeURIComponent(publicKey)}`, { headers: asJson }))).challenge
const send = async (body) => {
  const headers = { ...asJson, 'content-type': 'application/json' }
  const { location: next } = await ask(await fetch(address, { method: 'POST', headers, body: JSON.stringify(body) }))
  say('Done. You are being sent back.')
  window.location.assign(next)
}

const onClick = (id, act) => {
  const attempt = async () => {
    say('')
    try {
      await act()
    } catch (error) {
      say(`That did not work: ${error.message.replace(/\.$/, '')}.`)
    }
  }
  at(id).addEventListener('click', () => perform(at(id), attempt))
}

/** The public key that the page shows as the reader's. */
let shown
/** Shows whose key this browser has, which another tab may have made, changed or forgotten. */
const arrange = async () => {
  const own = await me()
  shown = own?.key.publicKey
  at('own').hidden = own === undefined
  at('none').hidden = own !== undefined
  if (own === undefined) at('elsewhere').open = true
  else at('who').textContent = nameOf(own.who)
}
void arrange()
document.addEventListener('key-changed', () => void arrange())

onClick('sign', async () => {
  const key = await keys.get()
  if (key?.publicKey !== shown) {
    document.dispatchEvent(new Event('key-changed'))
    throw new Error('the key of this browser was changed in another tab: see below who you are now')
  }
  const challenge = await challengeFor(key.publicKey)
  await send({ public_key: key.publicKey, signature: await sign(key, encoder.encode(challenge)) })
})
onClick('show', async () => {
  at('bytes').value = await challengeFor(at('key').value.trim())
})
onClick('send', () => {
  if (at('bytes').value === '') throw new Error('press “Show what to sign” first, and sign what it shows')
  return send({ public_key: at('key').value.trim(), signature: at('signature').value.trim() })
})
onClick('deny', () => send({ deny: true }))
