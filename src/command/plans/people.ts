/** How writes on people are carried out: all of them by the registry, which knows every handle, key and suspension. */
import { registryName } from '../../../actors/record.ts'
import { decodeBytes32, decodeBytes64, identityId } from '../../format/encoding.ts'
import { sizes } from '../../limits.ts'
import { type Refusal, refusal } from '../../refusals.ts'
import type { Doors, Found, Plan, Plans, Shown } from '../plan.ts'
import type { Verified } from '../reply.ts'

const registry = () => ({ actor: registryName })
const own = ({ signer }: Verified): Shown => ({ read: 'identity.get', args: { target: signer.id } })

const setProfile: Plan = {
  to: registry,
  check: ({ data }) => profileFault(data as { description?: string; capabilities?: string[]; links?: string[] }),
  show: own,
}

function profileFault(profile: {
  description?: string
  capabilities?: string[]
  links?: string[]
}): Refusal | undefined {
  const { description = '', capabilities = [], links = [] } = profile
  const sent = Buffer.byteLength(description)
  if (sent > sizes.profile_description_bytes) {
    const message = `description has ${sent} bytes, ${sizes.profile_description_bytes} are allowed`
    return refusal('too_large', message, 'data')
  }
  if (new Set(capabilities).size < capabilities.length)
    return refusal('invalid_field', 'capabilities must name each capability once', 'data')
  const bad = links.find((link) => !isPlainLink(link))
  return bad === undefined
    ? undefined
    : refusal('invalid_field', `links must be http(s) addresses without user or password, and one is "${bad}"`, 'data')
}

function isPlainLink(link: string): boolean {
  if (!URL.canParse(link)) return false
  const { username, password } = new URL(link)
  return username === '' && password === ''
}

const rotate: Plan = {
  to: registry,
  args: ({ command }) => ({ to: command.target, proof: command.proof }),
  ask: proveNewKey,
  heard: ({ command, signer }, _, { news }) =>
    news.noteRotation({ identity: signer.id, from: signer.text, to: command.target as string }),
  show: own,
}

/** The new key must have signed the same bytes, and never have acted: as an identity of its own it would lose what is its. */
function proveNewKey({ command, bytes }: Verified, doors: Doors, pass: (found: Found) => void): void {
  const key = decodeBytes32(command.target as string)!
  const identity = identityId(key)
  doors.verify(decodeBytes64(command.proof as string)!, key, bytes, (verdict) => {
    if (verdict === 'overloaded')
      return pass({
        refusal: refusal('overloaded', 'more signatures wait than can be checked: try again', undefined, 1),
      })
    if (verdict === 'bad_key')
      return pass({ refusal: refusal('bad_key', 'target is no canonical, torsion-free Ed25519 key', 'target') })
    if (verdict !== 'good') {
      const message = 'proof must be the signature of the new key (target) over the same bytes that the old key signed'
      return pass({ refusal: refusal('bad_signature', message, 'proof') })
    }
    // As this identity itself asks: what it did in private rooms counts too.
    doors.read({ op: 'identity.get', args: { target: identity }, reader: identity }, (found) =>
      pass(found === undefined ? undefined : { args: { identity, used: found.ok } }),
    )
  })
}

function suspension(isSuspended: boolean): Plan {
  return {
    to: registry,
    args: ({ command }) => ({ target: command.target, reason: command.reason ?? '' }),
    ask: ({ command }, { boardIdentity }, pass) => pass({ args: { isBoard: command.target === boardIdentity } }),
    heard: ({ command }, _, { news }) => news.noteSuspension(command.target as string, isSuspended),
    show: ({ command }, { facts }) => ({
      values: { suspension: { target: command.target, suspended: isSuspended, reason: facts.reason } },
    }),
  }
}

export const peoplePlans: Plans = {
  'identity.profile.set': setProfile,
  'identity.rotate': rotate,
  'identity.suspend': suspension(true),
  'identity.unsuspend': suspension(false),
}
