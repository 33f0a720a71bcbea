/** IP addresses and networks as text: parsing, canonical form, the network an address counts toward, and CIDR matching. */
import { BlockList, isIPv4, SocketAddress } from 'node:net'

/** `address`: as returned by `parseAddress`. */
type Network = { readonly address: string; readonly bits: number; readonly family: 'ipv4' | 'ipv6' }

/** Bits before the IPv4 address in an IPv4-mapped IPv6 address (RFC 4291, 2.5.5.2). */
const mappedBits = 96

/**
 * Canonical form of an address: IPv4 dotted, also for an IPv4-mapped IPv6 address (::ffff:a.b.c.d); IPv6 as in RFC
 * 5952, without a zone. Undefined if the text is not an address.
 */
export function parseAddress(text: string): string | undefined {
  if (isIPv4(text)) return text
  const bare = text.split('%', 1)[0]!
  const address = ipv6Of(bare)
  return address === undefined ? undefined : (embeddedIpv4(bare) ?? embeddedIpv4(address) ?? address)
}

/**
 * The network that one customer typically has: an IPv4 address, or the /64 of an IPv6 address. `address`: as returned
 * by `parseAddress`.
 */
export function networkOf(address: string): string {
  return address.includes(':') ? `${leadingGroups(address, 4)}::/64` : address
}

/** The /48 above the network of an IPv6 address: a provider may give one customer up to 65,536 networks. Undefined for IPv4. */
export function widerNetworkOf(address: string): string | undefined {
  return address.includes(':') ? `${leadingGroups(address, 3)}::/48` : undefined
}

export function isAddressOrNetwork(text: string): boolean {
  return parse(text) !== undefined
}

/** Canonical form of an address or network: no bits set after the prefix, and no prefix for a single address. */
export function canonicalNetwork(text: string): string | undefined {
  const network = parse(text)
  if (network === undefined) return undefined
  const { address, bits, family } = network
  const masked =
    family === 'ipv4'
      ? address
          .split('.')
          .map((byte, at) => Number(byte) & prefixMask(8, bits - 8 * at))
          .join('.')
      : ipv6Of(
          groupsOf(address)
            .map((group, at) => (Number.parseInt(group, 16) & prefixMask(16, bits - 16 * at)).toString(16))
            .join(':'),
        )!
  return bits === (family === 'ipv4' ? 32 : 128) ? masked : `${masked}/${bits}`
}

/** A mask of `width` bits whose first `set` bits are set. */
function prefixMask(width: number, set: number): number {
  const kept = Math.min(width, Math.max(0, set))
  return ((1 << kept) - 1) << (width - kept)
}

/** Whether an address is in one of these networks; false if the text is not an address. */
export function isWithin(address: string, networks: readonly string[]): boolean {
  return new NetworkSet(networks).has(address)
}

/** A set of addresses and networks for repeated lookups. */
export class NetworkSet {
  // A separate list per family: in a shared list an IPv4 address would also be looked up in IPv6 networks.
  readonly #lists = { ipv4: new BlockList(), ipv6: new BlockList() }

  constructor(networks: readonly string[]) {
    for (const text of networks) {
      const network = parse(text)
      if (network !== undefined) this.#lists[network.family].addSubnet(network.address, network.bits, network.family)
    }
  }

  has(text: string): boolean {
    const address = parseAddress(text)
    if (address === undefined) return false
    const family = address.includes(':') ? 'ipv6' : 'ipv4'
    return this.#lists[family].check(address, family)
  }
}

/** Undefined if the text is neither an address nor a network. */
function parse(text: string): Network | undefined {
  const [address = '', bits, ...rest] = text.split('/')
  const ipv4 = isIPv4(address)
  const ipv6 = ipv4 ? undefined : ipv6Of(address)
  if (rest.length > 0 || (!ipv4 && ipv6 === undefined)) return undefined
  const most = ipv6 === undefined ? 32 : 128
  if (bits !== undefined && (!/^(0|[1-9][0-9]{0,2})$/.test(bits) || Number(bits) > most)) return undefined
  const count = Number(bits ?? most)
  if (ipv6 === undefined) return { address, bits: count, family: 'ipv4' }
  const carried = count < mappedBits ? undefined : embeddedIpv4(ipv6)
  if (carried !== undefined) return { address: carried, bits: count - mappedBits, family: 'ipv4' }
  return { address: ipv6, bits: count, family: 'ipv6' }
}

function embeddedIpv4(address: string): string | undefined {
  const tail = address.slice('::ffff:'.length)
  return address.startsWith('::ffff:') && isIPv4(tail) ? tail : undefined
}

/**
 * Canonical IPv6 (RFC 5952); undefined if not an IPv6 address. Node's `isIPv6` would compile a long pattern first: 5 ms
 * of each thread's start.
 */
function ipv6Of(text: string): string | undefined {
  if (!/^[0-9A-Fa-f:.]+$/.test(text)) return undefined
  try {
    return new SocketAddress({ address: text, family: 'ipv6' }).address
  } catch {
    return undefined
  }
}

/** The first groups of an IPv6 address. Called for every request, so most addresses are cut as they are, without expanding them. */
function leadingGroups(address: string, count: number): string {
  let end = -1
  for (let group = 0; group < count; group++) {
    const next = address.indexOf(':', end + 1)
    if (next <= end + 1) return groupsOf(address).slice(0, count).join(':')
    end = next
  }
  return address.slice(0, end)
}

/** The eight groups of an IPv6 address. */
function groupsOf(address: string): string[] {
  const [head = '', tail = ''] = address.replace(/(\d+)\.(\d+)\.(\d+)\.(\d+)$/, lastTwoGroups).split('::')
  const first = head === '' ? [] : head.split(':')
  const last = tail === '' ? [] : tail.split(':')
  const zeros = Array<string>(Math.max(0, 8 - first.length - last.length)).fill('0')
  return [...first, ...zeros, ...last]
}

/** Converts a trailing dotted IPv4 address to two groups. */
function lastTwoGroups(_: string, ...bytes: string[]): string {
  const [a = 0, b = 0, c = 0, d = 0] = bytes.slice(0, 4).map(Number)
  return `${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}`
}

/**
 * Whether a host name refers to this machine. `hostname`: as in a URL, without a port and with brackets around IPv6
 * (WHATWG URL, "host serializing").
 */
export function isLoopbackHost(hostname: string): boolean {
  return /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/.test(hostname)
}
