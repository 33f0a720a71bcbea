/** Addresses and networks that may deliver. */
import { expect, test } from 'vitest'
import {
  canonicalNetwork,
  isAddressOrNetwork,
  isWithin,
  networkOf,
  parseAddress,
  widerNetworkOf,
} from '../../../actors/kernel/networks.ts'

test.each(['192.0.2.1', '192.0.2.0/24', '0.0.0.0/0', '2001:db8::1', '2001:db8::/32', '::/0'])('%s is valid', (text) => {
  expect(isAddressOrNetwork(text)).toBe(true)
})

test.each([
  '',
  '/',
  '192.0.2.1/',
  '192.0.2.0/33',
  '192.0.2.0/024',
  '192.0.2.0/24/8',
  '256.1.1.1',
  'example.org',
  '::/129',
  'fe80::1%eth0',
])('%s is invalid', (text) => {
  expect(isAddressOrNetwork(text)).toBe(false)
})

test.each([
  ['192.0.2.9', ['192.0.2.0/28'], true],
  ['192.0.2.16', ['192.0.2.0/28'], false],
  ['192.0.2.16', ['198.51.100.1', '192.0.2.16'], true],
  ['2001:db8:1::5', ['2001:db8::/32'], true],
  ['2001:db9::', ['2001:db8::/32'], false],
  ['192.0.2.1', ['::/0'], false],
  ['2001:db8::1', ['0.0.0.0/0'], false],
  ['127.0.0.1', ['::ffff:127.0.0.1'], true],
  ['::ffff:127.0.0.1', ['127.0.0.0/8'], true],
  ['192.0.2.7', ['0:0:0:0:0:ffff:c000:200/120'], true],
  ['192.0.3.7', ['::ffff:192.0.2.0/120'], false],
  ['::ffff:1:2:3', ['::ffff:0:0/64'], true],
  ['127.0.0.1/8', ['127.0.0.0/8'], false],
  ['unknown', ['0.0.0.0/0', '::/0'], false],
  ['', ['0.0.0.0/0', '::/0'], false],
])('%s in %j: %s', (address, networks, isIn) => {
  expect(isWithin(address, networks)).toBe(isIn)
})

test.each([
  ['192.0.2.1', '192.0.2.1'],
  ['::ffff:192.0.2.1', '192.0.2.1'],
  ['::FFFF:C000:0201', '192.0.2.1'],
  ['0:0:0:0:0:ffff:c000:201', '192.0.2.1'],
  ['0000:0000:0000:0000:0000:ffff:192.0.2.1', '192.0.2.1'],
  ['2001:0DB8:0000:0000:0001:0000:0000:0001', '2001:db8::1:0:0:1'],
  ['fe80::1%eth0', 'fe80::1'],
  ['192.0.2.01', undefined],
  ['192.0.2.1:80', undefined],
  ['[2001:db8::1]', undefined],
  ['2001:db8::1/64', undefined],
  [' 192.0.2.1', undefined],
  ['', undefined],
  ['unknown', undefined],
])('%s is the address %s', (text, address) => {
  expect(parseAddress(text)).toBe(address)
})

test.each([
  ['192.0.2.1', '192.0.2.1', undefined],
  ['::ffff:192.0.2.1', '192.0.2.1', undefined],
  ['2001:db8::1', '2001:db8:0:0::/64', '2001:db8:0::/48'],
  ['2001:db8:0:0:ffff::1', '2001:db8:0:0::/64', '2001:db8:0::/48'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64', '2001:db8:1::/48'],
  ['2001:db8:1:3::', '2001:db8:1:3::/64', '2001:db8:1::/48'],
  ['2001:db8:1::3', '2001:db8:1:0::/64', '2001:db8:1::/48'],
  ['2001::', '2001:0:0:0::/64', '2001:0:0::/48'],
  ['1:2:3:4:5:6:7:8', '1:2:3:4::/64', '1:2:3::/48'],
  ['::1', '0:0:0:0::/64', '0:0:0::/48'],
  ['::', '0:0:0:0::/64', '0:0:0::/48'],
  ['::192.0.2.1', '0:0:0:0::/64', '0:0:0::/48'],
])('%s counts in %s, and above it in %s', (text, network, wider) => {
  const address = parseAddress(text)!
  expect([networkOf(address), widerNetworkOf(address)]).toEqual([network, wider])
})

test.each([
  ['192.0.2.9', '192.0.2.9'],
  ['192.0.2.9/32', '192.0.2.9'],
  ['192.0.2.9/24', '192.0.2.0/24'],
  ['192.0.2.9/0', '0.0.0.0/0'],
  ['203.0.113.255/27', '203.0.113.224/27'],
  ['2001:DB8:1:2:3::5/64', '2001:db8:1:2::/64'],
  ['2001:db8:1:ffff::/50', '2001:db8:1:c000::/50'],
  ['2001:db8::1/128', '2001:db8::1'],
  ['::ffff:192.0.2.9/120', '192.0.2.0/24'],
  ['::192.0.2.9/128', '::192.0.2.9'],
  ['192.0.2.0/33', undefined],
])('%s is the network %s', (text, network) => {
  expect(canonicalNetwork(text)).toBe(network)
})
