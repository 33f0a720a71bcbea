/**
 * Which IP addresses the board may connect to on behalf of users: those that are globally reachable, by the registries of
 * IANA (RFC 6890 and what was added since). Everything that names this machine, its network or no machine at all is out,
 * and so is every form that carries an IPv4 address inside an IPv6 one (mapped, compatible, NAT64, 6to4, Teredo): the owner of
 * a public IPv4 address can say it plainly.
 */
import { BlockList, isIP } from 'node:net'

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

/** The only part of IPv6 that is given out to machines of the Internet. */
const given6 = listOf('ipv6', ['2000::/3'])
const closed6 = listOf('ipv6', [
  '2001::/23', // protocol assignments: Teredo, ORCHID, benchmarks
  '2001:db8::/32', // documentation
  '2002::/16', // 6to4
  '2620:4f:8000::/48', // AS112
  '3fff::/20', // documentation
])

const loopback4 = listOf('ipv4', ['127.0.0.0/8'])

export function isLoopback(address: string): boolean {
  return isIP(address) === 4 ? loopback4.check(address, 'ipv4') : address === '::1'
}

/** `loopback`: this machine is allowed too (tests only). */
export function mayConnect(address: string, loopback: boolean): boolean {
  if (loopback && isLoopback(address)) return true
  const version = isIP(address)
  // A zone index belongs to link-local addresses alone.
  if (version === 0 || address.includes('%')) return false
  if (version === 4) return !closed4.check(address, 'ipv4')
  return given6.check(address, 'ipv6') && !closed6.check(address, 'ipv6')
}
