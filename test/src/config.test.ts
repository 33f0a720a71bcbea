import { expect, test } from 'vitest'
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
  expect(readConfig('', { TRUST_PROXY: 'X-Real_IP' })).toMatchObject({ trustProxy: 'x-real_ip' })
})
