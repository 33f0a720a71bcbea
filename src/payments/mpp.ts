/**
 * MPP, the HTTP authentication scheme `Payment`: challenges from WWW-Authenticate, the credential that answers one, and the receipt that
 * comes back. Only the method `tempo` with intent `charge` is paid (tempo.ts).
 *
 * Texts in a challenge are quoted strings; characters above U+00FF are written as \uXXXX. `request` and `opaque` are base64url of JSON and
 * are sent back verbatim.
 */
import type { Answered } from '../outgoing/request.ts'
import type { Challenge } from './challenge.ts'
import type { Offer, PaymentReceipt } from './payment.ts'
import { tempoOffer } from './tempo.ts'
import type { Wallet } from './wallet.ts'
import { type Fields, parsedObject, shortText } from './x402.ts'

const challengesMax = 32
const headerCharsMax = 32_768
const names = [
  'id',
  'realm',
  'method',
  'intent',
  'request',
  'expires',
  'digest',
  'description',
  'opaque',
  'header',
] as const

export function challengesOf({ headers }: Pick<Answered, 'headers'>): Challenge[] {
  const lines = headers['www-authenticate'] ?? []
  return lines.flatMap((line) => (line.length > headerCharsMax ? [] : challengesIn(line))).slice(0, challengesMax)
}

/** All challenges of the scheme in one header line; malformed ones are skipped. */
export function challengesIn(line: string): Challenge[] {
  return schemesIn(line).flatMap(({ scheme, params, isSound }) => {
    if (scheme.toLowerCase() !== 'payment' || !isSound) return []
    const found = Object.fromEntries(names.flatMap((name) => (params.has(name) ? [[name, params.get(name)!]] : [])))
    const { id, realm, method, intent, request } = found
    const isWhole = [id, realm, method, intent, request].every((each) => each !== undefined) && id !== ''
    return isWhole && /^[a-z][a-z0-9:_-]*$/.test(method!) ? [found as Challenge] : []
  })
}

type Scheme = { readonly scheme: string; readonly params: Map<string, string>; isSound: boolean }

/** RFC 9110 11.6.1: a list in which commas separate both challenges and their parameters. */
function schemesIn(line: string): Scheme[] {
  const found: Scheme[] = []
  const token = /[!#$%&'*+.^_`|~0-9A-Za-z/-]+/y
  let at = 0
  while (at < line.length) {
    if (/[\s,]/.test(line[at]!)) {
      at++
      continue
    }
    token.lastIndex = at
    const name = token.exec(line)?.[0]
    if (name === undefined) return found
    at += name.length
    const equals = /\s*=\s*/y
    equals.lastIndex = at
    const sign = equals.exec(line)?.[0]
    const current = found.at(-1)
    if (sign === undefined) {
      found.push({ scheme: name, params: new Map(), isSound: true })
      continue
    }
    const value = valueAt(line, at + sign.length)
    if (value === undefined || current === undefined) return found.slice(0, -1)
    const key = name.toLowerCase()
    if (current.params.has(key)) current.isSound = false
    current.params.set(key, value.text)
    at = value.end
  }
  return found
}

function valueAt(line: string, start: number): { text: string; end: number } | undefined {
  if (line[start] !== '"') {
    const plain = /[^\s,"]*/y
    plain.lastIndex = start
    const text = plain.exec(line)?.[0] ?? ''
    return { text, end: start + text.length }
  }
  let text = ''
  for (let at = start + 1; at < line.length; at++) {
    const char = line[at]!
    if (char === '"') return { text, end: at + 1 }
    if (char !== '\\') text += char
    else {
      const escaped = /^u([0-9A-Fa-f]{4})/.exec(line.slice(at + 1, at + 6))?.[1]
      text += escaped === undefined ? (line[at + 1] ?? '') : String.fromCharCode(Number.parseInt(escaped, 16))
      at += escaped === undefined ? 1 : 5
    }
  }
  return undefined
}

/** A challenge for display, with its request decoded. */
export function shownChallenge(challenge: Challenge): Fields {
  const { request, ...rest } = challenge
  return { ...rest, request: requestIn(challenge) ?? request }
}

export function requestIn({ request }: Pick<Challenge, 'request'>): Fields | undefined {
  return parsedObject(Buffer.from(request, 'base64url').toString('utf8'))
}

export function mppOffers(challenges: readonly Challenge[], wallet: Wallet, now: number): Offer[] {
  return challenges.flatMap((challenge) => {
    if (challenge.method !== 'tempo' || challenge.intent !== 'charge') return []
    const expires = challenge.expires === undefined ? undefined : Date.parse(challenge.expires) / 1_000
    if (expires !== undefined && !(expires > now)) return []
    const offer = tempoOffer(challenge, requestIn(challenge), wallet, expires)
    return offer === undefined ? [] : [offer]
  })
}

/** Undefined if no payment is reported as taken. */
export function mppReceiptOf({ headers }: Pick<Answered, 'headers'>): Omit<PaymentReceipt, 'network'> | undefined {
  const header = headers['payment-receipt']?.[0]
  const found = header === undefined ? undefined : parsedObject(Buffer.from(header, 'base64url').toString('utf8'))
  if (found?.status !== 'success') return undefined
  return { protocol: 'mpp', reference: shortText(found.reference), timestamp: shortText(found.timestamp).slice(0, 40) }
}
