/** Which client address counts behind a proxy, as both HTTP engines read it from a socket. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { TrustedProxy } from '../../../src/config.ts'
import { ClientAddresses } from '../../../src/http/client-address.ts'
import type { HttpServer } from '../../../src/http/port.ts'
import { describeEngines, get, textHeaders } from '../../support/http-engines.ts'
import { rawRequest } from '../../support/raw-http.ts'

const loopback = ['127.0.0.0/8', '::1/128']

type Case = readonly [lines: readonly string[], address: string]

describeEngines((engine) => {
  let server: HttpServer
  let port: number
  let addresses: ClientAddresses
  const warnings: string[] = []

  beforeAll(async () => {
    server = await engine.start((exchange) => exchange.reply(200, textHeaders, addresses.of(exchange)))
    port = await server.listen('127.0.0.1', 0)
  })
  afterAll(() => server.close())

  async function seenFrom(lines: readonly string[]): Promise<string | undefined> {
    const answer = await rawRequest(port, get('/', lines.map((line) => `${line}\r\n`).join('')))
    return answer?.body.toString()
  }

  function behind(proxy: Partial<TrustedProxy>): void {
    addresses = new ClientAddresses({ header: 'x-forwarded-for', hops: 1, from: loopback, ...proxy }, (event, facts) =>
      warnings.push(`${event}: ${facts.problem}`),
    )
  }

  describe('a header that every proxy appends to', () => {
    test.each<Case>([
      [['X-Forwarded-For: 198.51.100.7'], '198.51.100.7'],
      // What the client sent is to the left of what the proxy appended.
      [['X-Forwarded-For: 203.0.113.9, 198.51.100.7'], '198.51.100.7'],
      // HAProxy appends its own line.
      [['X-Forwarded-For: 203.0.113.9', 'X-Forwarded-For: 198.51.100.7'], '198.51.100.7'],
      [['x-forwarded-for: a, b', 'User-Agent: c', 'X-FORWARDED-FOR:198.51.100.7 '], '198.51.100.7'],
      [['X-Forwarded-For: 203.0.113.9", "', 'X-Forwarded-For: 198.51.100.7'], '198.51.100.7'],
      [['X-Forwarded-For: 2001:DB8:0:0::1'], '2001:db8::1'],
      [['X-Forwarded-For: [2001:db8::1]:4711'], '2001:db8::1'],
      [['X-Forwarded-For: 198.51.100.7:4711'], '198.51.100.7'],
      [['X-Forwarded-For: ::ffff:198.51.100.7'], '198.51.100.7'],
      [[], '127.0.0.1'],
      [['X-Forwarded-For: 198.51.100.7', 'X-Forwarded-For:'], '127.0.0.1'],
      [['X-Forwarded-For: 198.51.100.7, unknown'], '127.0.0.1'],
      [['X-Forwarded-For: 198.51.100.7 203.0.113.9'], '127.0.0.1'],
      [['X-Forwarded-For: 198.51.100.0/24'], '127.0.0.1'],
      [['X-Forwarded-For: 198.51.100.256'], '127.0.0.1'],
      [['X-Real-IP: 198.51.100.7'], '127.0.0.1'],
    ])('%j is %s', async (lines, address) => {
      behind({})
      expect(await seenFrom(lines)).toBe(address)
    })
  })

  test.each<Case>([
    [['X-Forwarded-For: 203.0.113.9, 198.51.100.7, 10.0.0.2'], '198.51.100.7'],
    [['X-Forwarded-For: 203.0.113.9, 198.51.100.7', 'X-Forwarded-For: 10.0.0.2'], '198.51.100.7'],
    [['X-Forwarded-For: 203.0.113.9', 'X-Forwarded-For: 198.51.100.7', 'X-Forwarded-For: 10.0.0.2'], '198.51.100.7'],
    [['X-Forwarded-For: 198.51.100.7, 10.0.0.2'], '198.51.100.7'],
    // A client that bypassed the first proxy has no entry from it.
    [['X-Forwarded-For: 198.51.100.7'], '127.0.0.1'],
  ])('behind two proxies %j is %s', async (lines, address) => {
    behind({ hops: 2 })
    expect(await seenFrom(lines)).toBe(address)
  })

  test.each<Case>([
    [['Forwarded: for=198.51.100.7'], '198.51.100.7'],
    [['Forwarded: for=203.0.113.9, for=198.51.100.7'], '198.51.100.7'],
    [['Forwarded: for=203.0.113.9', 'Forwarded: for=198.51.100.7;proto=http;by=10.0.0.2'], '198.51.100.7'],
    [['Forwarded: proto=https;For="198.51.100.7:4711"; host=a'], '198.51.100.7'],
    [['Forwarded: for="[2001:db8:cafe::17]:4711"'], '2001:db8:cafe::17'],
    [['Forwarded: for="[2001:db8:cafe::17]:_port"'], '2001:db8:cafe::17'],
    [['Forwarded: for="[2001:db8:cafe::17]"'], '2001:db8:cafe::17'],
    [['Forwarded: for="198\\.51.100.7"'], '198.51.100.7'],
    [['Forwarded: host="a,for=203.0.113.9;\\",b";for=198.51.100.7'], '198.51.100.7'],
    // A quote that the client leaves open does not hide what the proxy appends, in the same line or the next.
    [['Forwarded: for="203.0.113.9, for=198.51.100.7'], '198.51.100.7'],
    [['Forwarded: for="203.0.113.9;x="', 'Forwarded: for=198.51.100.7'], '198.51.100.7'],
    [['Forwarded: for="203.0.113.9\\', 'Forwarded: for="198.51.100.7"'], '198.51.100.7'],
    [['Forwarded: for=203.0.113.9, for=unknown'], '127.0.0.1'],
    [['Forwarded: for=203.0.113.9, for=_hidden'], '127.0.0.1'],
    [['Forwarded: for=203.0.113.9, proto=http'], '127.0.0.1'],
    [['Forwarded: for=203.0.113.9;for=198.51.100.7'], '127.0.0.1'],
    [['Forwarded: for=203.0.113.9,'], '127.0.0.1'],
    [['Forwarded: 203.0.113.9'], '127.0.0.1'],
  ])('%j (RFC 7239) is %s', async (lines, address) => {
    behind({ header: 'forwarded' })
    expect(await seenFrom(lines)).toBe(address)
  })

  test('the header is trusted only from the configured peers, and a warning is logged once otherwise', async () => {
    warnings.length = 0
    behind({ from: ['10.0.0.0/8', '127.0.0.2'] })
    for (let n = 0; n < 2; n++) expect(await seenFrom(['X-Forwarded-For: 198.51.100.7'])).toBe('127.0.0.1')
    expect(warnings).toEqual([expect.stringContaining('127.0.0.1, which TRUST_PROXY_FROM does not name')])
    behind({ from: ['127.0.0.1'] })
    expect(await seenFrom(['X-Forwarded-For: 198.51.100.7'])).toBe('198.51.100.7')
  })

  test('without TRUST_PROXY no header is trusted, and one warning says that there seems to be a proxy', async () => {
    warnings.length = 0
    behind({ header: '' })
    expect(await seenFrom([])).toBe('127.0.0.1')
    expect(warnings).toEqual([])
    for (let n = 0; n < 2; n++) expect(await seenFrom(['X-Forwarded-For: 198.51.100.7'])).toBe('127.0.0.1')
    expect(warnings).toEqual([expect.stringContaining('TRUST_PROXY is not set')])
  })
})
