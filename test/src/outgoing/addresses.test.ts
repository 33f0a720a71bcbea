/** Which addresses are never connected to, however they are written and whoever says that a name resolves to them. */

import { describe, expect, test } from 'vitest'
import { systemClock } from '../../../src/clock.ts'
import { createOutgoing } from '../../../src/outgoing/request.ts'
import { addressFault, isLoopback, mayConnect, type Resolve } from '../../../src/outgoing/target.ts'

/** Hosts as they may be written in a URL, none of which is on the public Internet. */
const closedHosts = [
  '127.0.0.1',
  '127.1',
  '0177.0.0.1',
  '2130706433',
  '0x7f000001',
  '127.255.255.254',
  '0.0.0.0',
  '0',
  '10.0.0.1',
  '10.255.255.255',
  '172.16.0.1',
  '172.31.255.255',
  '192.168.0.1',
  '192.168.255.255',
  '169.254.169.254',
  '169.254.0.1',
  '100.64.0.1',
  '100.127.255.255',
  '192.0.0.1',
  '192.0.2.1',
  '198.51.100.1',
  '203.0.113.1',
  '198.18.0.1',
  '198.19.255.255',
  '224.0.0.1',
  '239.255.255.255',
  '240.0.0.1',
  '255.255.255.255',
  '[::]',
  '[::1]',
  '[::ffff:127.0.0.1]',
  '[::ffff:10.0.0.1]',
  '[::ffff:169.254.169.254]',
  '[::127.0.0.1]',
  '[64:ff9b::7f00:1]',
  '[64:ff9b:1::1]',
  '[100::1]',
  '[2001::1]',
  '[2001:20::1]',
  '[2001:db8::1]',
  '[2002:7f00:1::]',
  '[3fff::1]',
  '[5f00::1]',
  '[fc00::1]',
  '[fd12:3456::1]',
  '[fe80::1]',
  '[fec0::1]',
  '[ff02::1]',
  'localhost',
  'tool.localhost',
]
const openAddresses = [
  '8.8.8.8',
  '172.32.0.1',
  '172.15.255.255',
  '100.128.0.1',
  '1.1.1.1',
  '2606:4700::1111',
  '2a00:1450::1',
]

describe('addresses', () => {
  test.each(closedHosts)('https://%s/ is refused before any lookup or connection', async (host) => {
    expect(addressFault(`https://${host}/`, false)).toBeDefined()
    const outgoing = createOutgoing({ timers: systemClock, loopback: false, userAgent: 'test', resolve: nobodyAsks })
    expect(await outgoing.request({ url: `https://${host}/` })).toMatchObject({
      ok: false,
      failure: 'blocked',
      sent: false,
    })
  })

  test.each(closedHosts)('a name that resolves to %s is refused, even if it also has a good address', async (host) => {
    const address = new URL(`https://${host}/`).hostname.replace(/^\[|\]$/g, '')
    for (const answer of [[address], ['8.8.8.8', address], [address, '8.8.8.8']]) {
      const outgoing = createOutgoing({
        timers: systemClock,
        loopback: false,
        userAgent: 'test',
        resolve: async () => answer,
      })
      const got = await outgoing.request({ url: 'https://tool.example/' })
      expect(got).toMatchObject({ ok: false, failure: 'blocked', sent: false })
    }
  })

  test.each(openAddresses)('connecting to %s is allowed', (address) => {
    expect(mayConnect(address, false)).toBe(true)
    expect(isLoopback(address)).toBe(false)
  })

  test.each(['', 'localhost', '1.2.3', 'fe80::1%eth0', '::ffff:8.8.8.8', '64:ff9b::808:808'])(
    'connecting to "%s", not a plain public address, is refused',
    (text) => expect(mayConnect(text, true)).toBe(false),
  )

  test.each([
    'http://tool.example/',
    'ftp://tool.example/',
    'file:///etc/passwd',
    'gopher://tool.example/',
    'data:text/plain,x',
    'https://user@tool.example/',
    'https://user:word@tool.example/',
    'https://tool.example./',
    'https://tool.example:22/',
    'https://tool.example:25/',
    'https://tool.example:80/',
    'https://tool.example:6667/',
    `https://${'a'.repeat(250)}.example/`,
    `https://tool.example/${'a'.repeat(2048)}`,
    '//tool.example/',
    '/path',
    '',
  ])('%s is never called', (url) => {
    expect(addressFault(url, false)).toBeDefined()
  })

  test.each(['https://tool.example/', 'https://tool.example:8443/a?b=c', 'https://[2606:4700::1111]/'])(
    '%s may be called',
    (url) => {
      expect(addressFault(url, false)).toBeUndefined()
    },
  )

  test('where loopback is allowed nothing else is added: no private network, no http to others', async () => {
    expect(addressFault('http://127.0.0.1:8080/', true)).toBeUndefined()
    expect(addressFault('http://localhost:8080/', true)).toBeUndefined()
    for (const host of ['10.0.0.1', '169.254.169.254', '[::ffff:127.0.0.1]', '[fe80::1]']) {
      expect(addressFault(`http://${host}/`, true)).toBeDefined()
    }
    const outgoing = createOutgoing({
      timers: systemClock,
      loopback: true,
      userAgent: 'test',
      resolve: async () => ['8.8.8.8'],
    })
    expect(await outgoing.request({ url: 'http://tool.example/' })).toMatchObject({ failure: 'blocked' })
  })
})

const nobodyAsks: Resolve = async (name) => {
  throw new Error(`${name} was asked for`)
}
