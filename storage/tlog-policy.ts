/**
 * Parses a policy: the logs and witnesses that a client trusts, in one text (C2SP tlog-policy).
 *
 *   log <vkey> [<url>]
 *   witness <name> <vkey> [<url>]
 *   group <name> all|any|<k> <member>...       members are witnesses and groups named above
 *   quorum <name>|none                         exactly one
 *
 * `#` begins a comment line. Names are the policy's own; a vkey contains its own name.
 */
import { parseVkey, type VerifierKey } from './note.ts'
import { type Parsed, unreadable } from './parsed.ts'

export type PolicyLog = { readonly key: VerifierKey; readonly url: string | undefined }
export type PolicyWitness = { readonly name: string; readonly key: VerifierKey; readonly url: string | undefined }

export type Policy = {
  readonly logs: readonly PolicyLog[]
  readonly witnesses: readonly PolicyWitness[]
  /** Whether these signers are enough. */
  readonly isMet: (signedBy: readonly VerifierKey[]) => boolean
}

type Member = (signedBy: ReadonlySet<VerifierKey>) => boolean

export function parsePolicy(text: string): Parsed<Policy> {
  const logs: PolicyLog[] = []
  const witnesses: PolicyWitness[] = []
  const members = new Map<string, Member>()
  let quorum: Member | undefined
  for (const [n, line] of text.split('\n').entries()) {
    const [word = '', ...rest] = line.trim().split(/\s+/)
    const wrong = (problem: string): Parsed<never> => unreadable(`line ${n + 1}: ${problem}`)
    if (word === '' || word.startsWith('#')) continue
    if (word === 'log') {
      const [vkey = '', url] = rest
      const key = parseVkey(vkey)
      if (!key.ok) return wrong(key.problem)
      logs.push({ key: key.value, url })
    } else if (word === 'witness') {
      const [name = '', vkey = '', url] = rest
      const key = parseVkey(vkey)
      if (!key.ok) return wrong(key.problem)
      if (members.has(name) || name === 'none') return wrong(`the name ${name} is already used`)
      witnesses.push({ name, key: key.value, url })
      members.set(name, (signedBy) => signedBy.has(key.value))
    } else if (word === 'group') {
      const made = groupOf(rest, members)
      if (typeof made === 'string') return wrong(made)
      members.set(rest[0]!, made)
    } else if (word === 'quorum') {
      if (quorum !== undefined) return wrong('a policy must have exactly one quorum line')
      quorum = rest[0] === 'none' ? () => true : members.get(rest[0] ?? '')
      if (quorum === undefined) return wrong(`no witness or group above is named ${rest[0]}`)
    } else return wrong('a line must begin with log, witness, group or quorum')
  }
  if (quorum === undefined) return unreadable('a policy must have a line "quorum <name>" or "quorum none"')
  const enough = quorum
  return { ok: true, value: { logs, witnesses, isMet: (signedBy) => enough(new Set(signedBy)) } }
}

function groupOf([name = '', count = '', ...names]: readonly string[], known: Map<string, Member>): Member | string {
  if (name === '' || name === 'none' || known.has(name)) return `the name ${name} is already used`
  const needed =
    count === 'all' ? names.length : count === 'any' ? 1 : /^[1-9][0-9]{0,3}$/.test(count) ? Number(count) : 0
  if (needed === 0 || needed > names.length)
    return `a group of ${names.length} members cannot require "${count}" of them`
  const found = names.map((member) => known.get(member))
  const unknown = names.find((_, n) => found[n] === undefined)
  if (unknown !== undefined) return `no witness or group above is named ${unknown}`
  return (signedBy) => found.filter((member) => member!(signedBy)).length >= needed
}
