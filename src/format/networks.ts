/** IP addresses and networks in CIDR notation, as text. */
import { BlockList, isIP } from 'node:net'

type Network = { readonly address: string; readonly bits: number; readonly family: 'ipv4' | 'ipv6' }

/** Undefined: neither an address nor a network. */
function parse(text: string): Network | undefined {
  const [address = '', bits, ...rest] = text.split('/')
  const version = isIP(address)
  if (version === 0 || rest.length > 0 || address.includes('%')) return undefined
  const most = version === 4 ? 32 : 128
  if (bits === undefined) return { address, bits: most, family: version === 4 ? 'ipv4' : 'ipv6' }
  if (!/^(0|[1-9][0-9]{0,2})$/.test(bits) || Number(bits) > most) return undefined
  return { address, bits: Number(bits), family: version === 4 ? 'ipv4' : 'ipv6' }
}

export function isAddressOrNetwork(text: string): boolean {
  return parse(text) !== undefined
}

/** Whether an address lies in one of these; what is no address lies in none. */
export function isWithin(address: string, networks: readonly string[]): boolean {
  const version = isIP(address)
  if (version === 0) return false
  const family = version === 4 ? 'ipv4' : 'ipv6'
  const list = new BlockList()
  for (const text of networks) {
    const network = parse(text)
    // An IPv4 address would be looked for in IPv6 networks too.
    if (network?.family === family) list.addSubnet(network.address, network.bits, family)
  }
  return list.check(address, family)
}
