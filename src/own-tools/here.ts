/** Built-in tools that are fast for any input: they run immediately, on the calling thread. */
import { createHash } from 'node:crypto'
import { BadInput, type Input, type Output, readJson } from './own-tool.ts'

/** By id. `now`: Unix seconds when the call was accepted. */
export const hereTools: Readonly<Record<string, (input: Input, now: number) => Output | Promise<Output>>> = {
  'broadside:hash': hash,
  'broadside:canonical-json': canonicalJson,
  'broadside:time': time,
}

/** The bytes given to a tool that takes `text` or `base64`. */
export function givenBytes({ text, base64 }: Input): Buffer {
  if (typeof text === 'string') return Buffer.from(text, 'utf8')
  return decodedBase64(String(base64), 'base64')
}

/** Either alphabet, padded or not; nothing else. */
export function decodedBase64(text: string, name: string): Buffer {
  const bytes = Buffer.from(text, 'base64')
  const plain = text.replace(/=+$/, '').replaceAll('-', '+').replaceAll('_', '/')
  if (bytes.toString('base64').replace(/=+$/, '') !== plain) throw new BadInput(`${name} is not canonical base64`)
  return bytes
}

async function hash(input: Input): Promise<Output> {
  const { algorithm = 'sha256' } = input
  const bytes = givenBytes(input)
  if (algorithm !== 'blake3') return { algorithm, hex: createHash(String(algorithm)).update(bytes).digest('hex') }
  const { blake3 } = await import('@noble/hashes/blake3.js')
  return { algorithm, hex: Buffer.from(blake3(bytes)).toString('hex') }
}

function canonicalJson({ json }: Input): Output {
  const canonical = canonicalText(readJson(String(json), 'json'))
  return { canonical, sha256: createHash('sha256').update(canonical).digest('hex') }
}

/** RFC 8785: keys sorted by UTF-16 code units, numbers and strings as ECMAScript writes them. */
export function canonicalText(value: unknown): string {
  if (typeof value === 'string' && !value.isWellFormed()) throw new BadInput('a string contains a lone surrogate')
  if (typeof value === 'number' && !Number.isFinite(value))
    throw new BadInput('a number is larger than a double can be')
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  if (Array.isArray(value)) return `[${value.map(canonicalText).join(',')}]`
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
  return `{${members.map(([key, each]) => `${canonicalText(key)}:${canonicalText(each)}`).join(',')}}`
}

const rfc3339 = /^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d{1,9})?([Zz]|[+-]\d\d:\d\d)$/

function time({ at, zone = 'UTC' }: Input, now: number): Output {
  const unix = at === undefined ? now : typeof at === 'number' ? at : secondsOf(String(at))
  const moment = new Date(unix * 1_000)
  const format = zoneFormat(String(zone))
  const part = Object.fromEntries(format.formatToParts(moment).map(({ type, value }) => [type, value]))
  const offset = (part.timeZoneName ?? 'GMT').slice(3)
  const year = `${part.year}`.padStart(4, '0')
  const local = `${year}-${part.month}-${part.day}T${part.hour}:${part.minute}:${part.second}${offset || '+00:00'}`
  const weekday = part.weekday
  return { unix, utc: `${moment.toISOString().slice(0, 19)}Z`, local, zone: format.resolvedOptions().timeZone, weekday }
}

/** The years 1 to 9999, as accepted for numbers of seconds. */
const secondsMin = -62_135_596_800
const secondsMax = 253_402_300_799

function secondsOf(text: string): number {
  const written = text.replace(' ', 'T').toUpperCase()
  const seconds = rfc3339.test(text) ? Math.floor(Date.parse(written) / 1_000) : Number.NaN
  if (!(seconds >= secondsMin && seconds <= secondsMax))
    throw new BadInput('at is not an RFC 3339 time of the years 1 to 9999, such as 2027-01-15T08:00:00Z')
  const clock = written.slice(0, 19)
  // A day that its month does not have, and 24:00, are parsed as times of the following day.
  if (new Date(`${clock}Z`).toISOString().slice(0, 19) !== clock)
    throw new BadInput(`at is not a time of day: there is no ${clock}`)
  return seconds
}

function zoneFormat(timeZone: string): Intl.DateTimeFormat {
  try {
    return new Intl.DateTimeFormat('en-GB', {
      timeZone,
      weekday: 'long',
      year: 'numeric',
      month: '2-digit',
      day: '2-digit',
      hour: '2-digit',
      minute: '2-digit',
      second: '2-digit',
      hourCycle: 'h23',
      timeZoneName: 'longOffset',
    })
  } catch {
    throw new BadInput('zone is not a name in the IANA database, such as Europe/Vienna')
  }
}
