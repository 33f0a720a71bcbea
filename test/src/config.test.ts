import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { helpOf } from '../../src/cli/command-line.ts'
import { serveCommand } from '../../src/cli/serve.ts'
import { BadConfig, readConfig } from '../../src/config.ts'

test.each([
  ['BASE_URL', 'https://h.example?x=1'],
  ['BASE_URL', 'https://h.example?'],
  ['BASE_URL', 'https://h.example#top'],
  ['BASE_URL', 'https://user:pw@h.example'],
  ['BASE_URL', 'https://h.example/board'],
  ['BASE_URL', 'ftp://h.example'],
  ['BASE_URL', 'h.example'],
  ['TRUST_PROXY', 'X Forwarded For'],
  ['TRUST_PROXY', 'X-Forwarded-For:'],
  ['TRUST_PROXY_HOPS', '0'],
  ['TRUST_PROXY_HOPS', '1.5'],
  ['TRUST_PROXY_FROM', '10.0.0.0/33'],
  ['TRUST_PROXY_FROM', '10.0.0.1,'],
  ['TRUST_PROXY_FROM', 'proxy.example'],
  ['PAY_NETWORK', 'foo'],
  ['PAY_NODES', 'eip155:8453=file:///etc/passwd'],
  ['SCREEN_URL', 'mailto:somebody'],
])('%s=%s is refused in a sentence that names the variable', (name, value) => {
  const refused = () => readConfig('', { [name]: value })
  expect(refused).toThrow(BadConfig)
  expect(refused).toThrow(name)
  expect(refused).not.toThrow(/user|pw/)
})

test.each([
  ['https://h.example', 'https://h.example'],
  ['https://H.example:443/', 'https://h.example'],
  ['http://127.0.0.1:8787', 'http://127.0.0.1:8787'],
  ['http://[::1]:8787//', 'http://[::1]:8787'],
  ['', ''],
  ['/', ''],
])('BASE_URL=%s is the origin %s', (value, baseUrl) => {
  expect(readConfig('', { BASE_URL: value })).toMatchObject({ baseUrl })
})

test('TRUST_PROXY is the name of a header in any case', () => {
  expect(readConfig('', { TRUST_PROXY: 'X-Real_IP' })).toMatchObject({
    trustedProxy: { header: 'x-real_ip', hops: 1, from: ['127.0.0.0/8', '::1'] },
  })
})

test('every variable is in the table of HOSTING.md and in the help of serve, and the table has no other', () => {
  const asked = new Set(['LIMITS'])
  const has = (_: object, name: string | symbol) => {
    asked.add(String(name))
    return undefined
  }
  readConfig('', new Proxy({}, { get: has }))
  asked.add('DATA_DIR')
  const inTable = readFileSync(new URL('../../HOSTING.md', import.meta.url), 'utf8')
    .split('\n')
    .filter((line) => /^\| `[A-Z]/.test(line))
    .flatMap((line) => [...line.split('|')[1]!.matchAll(/`([A-Z_]+)`/g)].map(([, name]) => name!))
  expect(inTable.sort()).toEqual([...asked].sort())
  const inHelp = new Set([...helpOf(serveCommand).matchAll(/\b[A-Z]+(?:_[A-Z]+)*\b/g)].map(([name]) => name))
  expect([...asked].filter((name) => !inHelp.has(name))).toEqual([])
})
