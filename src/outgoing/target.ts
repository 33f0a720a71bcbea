/**
 * The target of a request: a user-supplied address, checked and turned into a host, a port and the IP addresses that the connection may
 * use. The rules:
 *
 * - https only, without user name and password; http only if loopback is allowed, and then only to loopback;
 * - port 443, or one used by ordinary services (1024 and up, except those that browsers refuse);
 * - every address of the name must be one we may connect to: a single bad address refuses them all.
 */

import { Resolver } from 'node:dns/promises'
import { BlockList, isIP, type LookupFunction, type Socket } from 'node:net'

export type Address = { readonly address: string; readonly family: 4 | 6 }
export type Resolve = (name: string, signal: AbortSignal) => Promise<readonly string[]>

export type Target = {
  readonly url: URL
  /** Without brackets, as the certificate must name it. */
  readonly host: string
  readonly port: number
  readonly secure: boolean
}

export const urlBytesMax = 2_048

/** Ports from 1024 on that belong to other protocols (the list of the Fetch standard). */
const foreignPorts = new Set([
  1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10_080,
])

/** A sentence that says why nothing is ever sent to this address, decided without DNS. */
export function addressFault(address: string, loopback: boolean): string | undefined {
  const target = parseTarget(address, loopback)
  return typeof target === 'string' ? target : undefined
}

/** A text says why not. */
export function parseTarget(address: string, loopback: boolean): Target | string {
  if (Buffer.byteLength(address) > urlBytesMax) return `an address has at most ${urlBytesMax} bytes`
  if (!URL.canParse(address)) return 'it is not an absolute URL'
  const url = new URL(address)
  const secure = url.protocol === 'https:'
  if (!secure && !(loopback && url.protocol === 'http:')) return 'only https:// addresses are allowed'
  if (url.username !== '' || url.password !== '') return 'an address must not contain a user name or password'
  const host = url.hostname.replace(/^\[|\]$/g, '')
  if (host === '' || host.length > 253 || host.endsWith('.')) return 'its host is not a plain name'
  const port = Number(url.port || (secure ? 443 : 80))
  const portIsFine = port === 443 || (!secure && port === 80) || (port >= 1024 && !foreignPorts.has(port))
  if (!portIsFine) return `port ${port} is not allowed: use 443, or one from 1024 up that no other protocol uses`
  const isOutside = isIP(host) === 0 ? loopback || !isLocalName(host) : mayConnect(host, loopback)
  if (!isOutside) return 'its host is not on the public Internet'
  return { url, host, port, secure }
}

/** RFC 6761: such a name is loopback, whatever a resolver says. */
function isLocalName(name: string): boolean {
  return name === 'localhost' || name.endsWith('.localhost')
}

/** Why a name has no usable address: `blocked` means we refuse it, `no_address` that it has none. */
export class NoAddress extends Error {
  readonly failure: 'blocked' | 'no_address'

  constructor(failure: 'blocked' | 'no_address', message: string) {
    super(message)
    this.failure = failure
  }
}

/** Resolves a name once; the connection is made only to the returned addresses. */
export async function vettedAddresses(
  target: Pick<Target, 'host' | 'secure'>,
  { loopback, resolve, signal }: { loopback: boolean; resolve: Resolve; signal: AbortSignal },
): Promise<Address[]> {
  const found = isIP(target.host) === 0 ? await resolve(target.host, signal) : [target.host]
  if (found.length === 0) throw new NoAddress('no_address', 'its host has no address')
  const bad = found.some((address) => !mayConnect(address, loopback) || (!target.secure && !isLoopback(address)))
  if (bad) throw new NoAddress('blocked', 'its host is not on the public Internet')
  return found.map((address) => ({ address, family: isIP(address) === 6 ? 6 : 4 }))
}

/** Gives a socket the vetted addresses; the name is not resolved again. */
export function lookupOf(addresses: readonly Address[]): LookupFunction {
  return (_host, options, callback) => {
    const [first] = addresses
    if (options.all) callback(null, [...addresses])
    else callback(null, first!.address, first!.family)
  }
}

/** The last of several safeguards: a socket that reached any other address sends nothing more. */
export function hasReached(socket: Socket, addresses: readonly Address[]): boolean {
  return addresses.some(({ address }) => address === socket.remoteAddress)
}

/**
 * Queries name servers directly (c-ares), not through the system's resolver. That one uses the few threads that file I/O needs too, where a
 * handful of unresponsive names would block everything else.
 */
export async function resolveName(name: string, signal: AbortSignal): Promise<readonly string[]> {
  if (isLocalName(name)) return ['127.0.0.1', '::1']
  const resolver = new Resolver({ timeout: 2_000, tries: 2 })
  const cancel = () => resolver.cancel()
  signal.addEventListener('abort', cancel, { once: true })
  try {
    const answers = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)])
    return answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []))
  } finally {
    signal.removeEventListener('abort', cancel)
  }
}

function listOf(family: 'ipv4' | 'ipv6', networks: readonly string[]): BlockList {
  const list = new BlockList()
  for (const network of networks) {
    const [address = '', bits] = network.split('/')
    list.addSubnet(address, Number(bits), family)
  }
  return list
}

const closed4 = listOf('ipv4', [
  '0.0.0.0/8', // this network
  '10.0.0.0/8', // private
  '100.64.0.0/10', // shared by carriers
  '127.0.0.0/8', // loopback
  '169.254.0.0/16', // link-local, metadata of clouds
  '172.16.0.0/12', // private
  '192.0.0.0/24', // protocol assignments
  '192.0.2.0/24', // documentation
  '192.31.196.0/24', // AS112
  '192.52.193.0/24', // AMT relays
  '192.88.99.0/24', // 6to4 relays
  '192.168.0.0/16', // private
  '192.175.48.0/24', // AS112
  '198.18.0.0/15', // benchmarks
  '198.51.100.0/24', // documentation
  '203.0.113.0/24', // documentation
  '224.0.0.0/4', // multicast
  '240.0.0.0/4', // reserved, broadcast
])

/** The only part of IPv6 that is allocated to hosts on the Internet. */
const given6 = listOf('ipv6', ['2000::/3'])
const closed6 = listOf('ipv6', [
  '2001::/23', // protocol assignments: Teredo, ORCHID, benchmarks
  '2001:db8::/32', // documentation
  '2002::/16', // 6to4
  '2620:4f:8000::/48', // AS112
  '3fff::/20', // documentation
])

const loopback4 = listOf('ipv4', ['127.0.0.0/8'])

/**
 * Which IP addresses the board may connect to on behalf of users: those that are globally reachable according to the IANA registries (RFC
 * 6890 and later additions). Everything that names this machine, its network or no machine at all is excluded. So is every form that embeds
 * an IPv4 address in an IPv6 one (mapped, compatible, NAT64, 6to4, Teredo): the owner of a public IPv4 address can give it directly.
 */
export function isLoopback(address: string): boolean {
  return isIP(address) === 4 ? loopback4.check(address, 'ipv4') : address === '::1'
}

/** `loopback`: also allow this machine (tests only). */
export function mayConnect(address: string, loopback: boolean): boolean {
  if (loopback && isLoopback(address)) return true
  const version = isIP(address)
  // Only link-local addresses have a zone index.
  if (version === 0 || address.includes('%')) return false
  if (version === 4) return !closed4.check(address, 'ipv4')
  return given6.check(address, 'ipv6') && !closed6.check(address, 'ipv6')
}
