/** Every field of a line of an export changed, one at a time, as somebody would who wants a file to say something else. */
import { type ExportReport, verifyExport } from '../../src/cli/verify-export.ts'
import { readOnThisThread } from '../../src/export-check/readers.ts'
import { chooseBackend, type Ed25519Backend } from '../../src/verify/backends.ts'
import type { VerifierKey } from '../../storage/note.ts'

export type Json = Record<string, unknown>
/** `path`: names with dots, an element of a list by its number. */
export type Mutation = { readonly path: string; readonly how: string; readonly line: Json }

/** All mutations of a line; `other`: a line of the same type, whose values are substituted. */
export function mutationsOf(line: Json, other: Json = {}): Mutation[] {
  return pathsOf(line, []).flatMap((keys) => {
    const path = keys.join('.')
    const before = at(line, keys)
    const values: [how: string, value: unknown][] = [['left out', undefined], ...changes(before)]
    if (typeof before !== 'object') values.push(['no text, no number', { toString: 1, valueOf: 1 }])
    const another = at(other, keys)
    // Each field of an author is mutated separately: the same author may have another handle there.
    if (another !== undefined && path !== 'author') values.push(['that of another line', another])
    return values
      .filter(([, value]) => JSON.stringify(value) !== JSON.stringify(before))
      .map(([how, value]) => ({ path, how, line: withValue(line, keys, value) }))
  })
}

function changes(value: unknown): [how: string, value: unknown][] {
  if (typeof value === 'number') return [['one more', value + 1]]
  if (typeof value === 'boolean') return [['turned', !value]]
  if (typeof value === 'string')
    return [
      ['its first character', changeCharacter(value, 0)],
      ['its last but one', changeCharacter(value, value.length - 2)],
      ['in a list', [value]],
    ]
  if (Array.isArray(value))
    return [
      ['emptied', []],
      ['doubled', [...value, ...value]],
      ['one more', [...value, { id: '0'.repeat(32) }]],
    ]
  return [['emptied', {}]]
}

/** Keeps its kind: hex stays hex, a letter a letter. */
function changeCharacter(text: string, at: number): string {
  const character = text[at] ?? ''
  return `${text.slice(0, Math.max(0, at))}${character === 'a' ? 'b' : character === '1' ? '2' : /\d/.test(character) ? '1' : 'a'}${text.slice(at + 1)}`
}

function pathsOf(value: unknown, keys: readonly string[]): (readonly string[])[] {
  if (typeof value !== 'object' || value === null) return [keys]
  const below = Object.entries(value).flatMap(([name, each]) => pathsOf(each, [...keys, name]))
  return keys.length === 0 ? below : [keys, ...below]
}

function at(value: unknown, keys: readonly string[]): unknown {
  return keys.reduce<unknown>((found, key) => (found as Json | undefined)?.[key], value)
}

function withValue(line: Json, keys: readonly string[], value: unknown): Json {
  const copy = structuredClone(line)
  const holder = at(copy, keys.slice(0, -1)) as Json
  const name = keys.at(-1)!
  if (value !== undefined) holder[name] = value
  else if (Array.isArray(holder)) holder.splice(Number(name), 1)
  else delete holder[name]
  return copy
}

/** Verifies many files that differ in one line: a signature that was verified before is not verified again. */
export class CachingVerifier {
  readonly #key: VerifierKey
  readonly #verdicts = new Map<string, boolean>()
  readonly #reader = readOnThisThread(this.#caching(chooseBackend()))

  constructor(key: VerifierKey) {
    this.#key = key
  }

  verify(lines: readonly Json[]): Promise<ExportReport> {
    return this.#verify(lines.map(bytesOf))
  }

  /** Undetected changes of the line at this place, as `path: how`. */
  async undetected(lines: readonly Json[], place: number): Promise<string[]> {
    const line = lines[place]!
    const whole = lines.map(bytesOf)
    const other = lines.find(({ type }, n) => n !== place && type === line.type)
    const unfound: string[] = []
    for (const { path, how, line: changed } of mutationsOf(line, other)) {
      const { failures } = await this.#verify(whole.with(place, bytesOf(changed)))
      if (failures === 0) unfound.push(`${path}: ${how}`)
    }
    return unfound
  }

  #verify(lines: readonly Buffer[]): Promise<ExportReport> {
    async function* read() {
      for (const [n, bytes] of lines.entries()) yield { number: n + 1, bytes, isCut: false }
    }
    return verifyExport({ lines: read(), reader: this.#reader, logKey: this.#key, progress: () => {} })
  }

  #caching(backend: Ed25519Backend): Ed25519Backend {
    return {
      ...backend,
      verify: (signature, message, publicKey) => {
        const name = Buffer.concat([signature, publicKey, message]).toString('latin1')
        const verdict = this.#verdicts.get(name) ?? backend.verify(signature, message, publicKey)
        this.#verdicts.set(name, verdict)
        return verdict
      },
    }
  }
}

function bytesOf(line: Json): Buffer {
  return Buffer.from(JSON.stringify(line))
}

/** Whether a change, as `unfound` names it, is of something that `broadside verify --help` calls the board's word. */
export function isBoardAssertion(line: Json, change: string): boolean {
  const [path, how] = change.split(': ') as [string, string]
  const [field, , part] = path.split('.')
  const isLeftOut = how === 'left out'
  if (isLeftOut && (path === 'hidden' || path === 'archive_eligible')) return true
  if (line.type === 'tombstone') return tombstoneAssertions.has(field!) || (isLeftOut && path === 'redaction')
  if (line.type === 'undelegation') return line.signed_payload === undefined && ['identity', 'ended_by'].includes(path)
  if (line.type !== 'event') return false
  if (path === 'author.handle' || ['votes', 'via', 'superseded_by'].includes(field!)) return true
  if (field === 'attachments') return (part !== undefined && part !== 'id') || (isLeftOut && isEmpty(line.attachments))
  if (path === 'thread') return line.reply_to !== undefined || isVersion(line)
  if (path === 'page' || path === 'reply_to') return isVersion(line)
  if (['actual_page', 'actual_kind', 'actual_format'].includes(path)) return true
  return path === 'format' && isLeftOut && line.format === 'text'
}

const tombstoneAssertions: ReadonlySet<string> = new Set([
  ...['author', 'page', 'kind', 'reply_to', 'to', 'thread', 'supersedes', 'superseded_by'],
  ...['reason', 'hidden_by', 'votes', 'via'],
])

function isVersion({ supersedes }: Json): boolean {
  return supersedes !== undefined
}

function isEmpty(list: unknown): boolean {
  return Array.isArray(list) && list.length === 0
}
