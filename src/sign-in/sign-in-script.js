/**
 * Signs a sign-in in the browser: with the key of this browser, or with a signature that was made elsewhere. Only the signature
 * leaves the page.
 */
import { encoder, keys, sign } from './board.js'

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
  const button = at(id)
  button.addEventListener('click', async () => {
    button.disabled = true
    say('')
    try {
      await act()
    } catch (error) {
      say(`That did not work: ${error.message}.`)
      button.disabled = false
      return
    }
    if (id === 'show') button.disabled = false
  })
}

let key
const offer = async () => {
  key = await keys.get().catch(() => undefined)
  at('own').hidden = key === undefined
  at('none').hidden = key !== undefined
  at('who').textContent = key?.publicKey ?? ''
}
await offer()
at('elsewhere').open = key === undefined
/** Another tab made, changed or forgot the key. */
addEventListener('storage', ({ key: name }) => name === 'me' && offer())

onClick('sign', async () => {
  const own = key
  const challenge = await challengeFor(own.publicKey)
  await send({ public_key: own.publicKey, signature: await sign(own, encoder.encode(challenge)) })
})
onClick('show', async () => {
  at('bytes').value = await challengeFor(at('key').value.trim())
})
onClick('send', () => send({ public_key: at('key').value.trim(), signature: at('signature').value.trim() }))
onClick('deny', () => send({ deny: true }))
