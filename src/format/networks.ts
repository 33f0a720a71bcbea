/** IP addresses and networks in CIDR notation, as text. */
import { BlockList, isIP } from 'node:net'

type Network = { readonly address: string; readonly bits: number; readonly family: 'ipv4' | 'ipv6' }

/** Bits before the IPv4 address in an IPv6 one that only carries it (RFC 4291, 2.5.5.2). */
const mappedBits = 96

/** Undefined: neither an address nor a network. An IPv4 address is one however it is written. */
function parse(text: string): Network | undefined {
  const [address = '', bits, ...rest] = text.split('/')
  const version = isIP(address)
  if (version === 0 || rest.length > 0 || address.includes('%')) return undefined
  const most = version === 4 ? 32 : 128
  if (bits !== undefined && (!/^(0|[1-9][0-9]{0,2})$/.test(bits) || Number(bits) > most)) return undefined
  const count = Number(bits ?? most)
  if (version === 4) return { address, bits: count, family: 'ipv4' }
  const carried = count < mappedBits ? undefined : carriedBy(address)
  if (carried !== undefined) return { address: carried, bits: count - mappedBits, family: 'ipv4' }
  return { address, bits: count, family: 'ipv6' }
}

/** The IPv4 address that an IPv6 one maps (::ffff:a.b.c.d). */
function carriedBy(address: string): string | undefined {
  // Written as RFC 5952 has it: the shortest way, which is one.
  const [, high, low] =
    /^\[::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})\]$/.exec(new URL(`http://[${address}]`).hostname) ?? []
  if (high === undefined || low === undefined) return undefined
  return [high, low]
    .map((group) => Number.parseInt(group, 16))
    .map((group) => `${group >> 8}.${group & 255}`)
    .join('.')
}

export function isAddressOrNetwork(text: string): boolean {
  return parse(text) !== undefined
}

/** Whether an address lies in one of these; what is no address lies in none. */
export function isWithin(address: string, networks: readonly string[]): boolean {
  const found = parse(address)
  if (found === undefined || address.includes('/')) return false
  const { family } = found
  const list = new BlockList()
  for (const text of networks) {
    const network = parse(text)
    // An IPv4 address would be looked for in IPv6 networks too.
    if (network?.family === family) list.addSubnet(network.address, network.bits, family)
  }
  return list.check(found.address, family)
}
