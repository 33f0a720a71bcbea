import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { misspelledSettings, readSettingsFile } from '../../src/cli/board-settings.ts'
import { helpOf } from '../../src/cli/command-line.ts'
import { serveCommand } from '../../src/cli/serve.ts'
import { readConfig, readSettings } from '../../src/config.ts'
import { BadConfig, fillEnvironment, settings } from '../../src/environment.ts'
import { program } from '../support/program.ts'
import { runProgram } from '../support/run-program.ts'
import { scratchDirectory } from '../support/scratch.ts'

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
  ['REPLICATE', 'n1.example:4222'],
  ['REPLICATE', 'https://n1.example'],
  ['REPLICATE', 'nats://user:pw@n1.example'],
  ['REPLICATE', 'nats://n1.example'],
  ['REPLICATE_ACK', 'quorum'],
  ['REPLICATE_ACK', 'local'],
])('%s=%s is refused in a sentence that names the variable', (name, value) => {
  const refused = () => readConfig('', { [name]: value })
  expect(refused).toThrow(BadConfig)
  expect(refused).toThrow(name)
  expect(refused).not.toThrow(/user|pw/)
})

test('PAY_TO and FACILITATOR_URL need each other, and the sentence names the one that is missing', () => {
  const payTo = { PAY_TO: `0x${'1'.repeat(40)}` }
  const facilitator = { FACILITATOR_URL: 'https://facilitator.example' }
  expect(() => readConfig('', payTo)).toThrow('PAY_TO needs FACILITATOR_URL')
  expect(() => readConfig('', facilitator)).toThrow('FACILITATOR_URL needs PAY_TO')
  expect(readConfig('', { ...payTo, ...facilitator }).sale).toBeDefined()
})

test('REPLICATE_ACK defaults to local, and an invalid choice is refused with a valid one', () => {
  const publishing = { REPLICATE: 'nats://n1.example', REPLICATE_KEY_FILE: 'a', REPLICATE_SYSTEM_KEY_FILE: 'b' }
  const ackOf = (more: Readonly<Record<string, string>>) => readConfig('', { ...publishing, ...more }).replication?.ack
  expect(ackOf({})).toBe('local')
  expect(ackOf({ REPLICATE_ACK: 'local' })).toBe('local')
  expect(ackOf({ REPLICATE_ACK: 'quorum' })).toBe('quorum')
  expect(ackOf({ REPLICATE_ACK: 'copy' })).toBe('copy')
  expect(() => ackOf({ REPLICATE_ACK: 'all' })).toThrow('REPLICATE_ACK must be local, quorum or copy. It is "all".')
  const following = { ...publishing, FOLLOW: 'https://h.example', REPLICA_KEY_FILE: 'c', REPLICATE_ACK: 'quorum' }
  expect(readConfig('', following)).toMatchObject({ replication: undefined, lead: { ack: 'quorum' } })
  const reading = { ...following, REPLICATE_SYSTEM_KEY_FILE: '' }
  expect(() => readConfig('', reading)).toThrow('REPLICATE_ACK is for a board that publishes or may lead')
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
  const asked = [...readSettings({}).keys()]
  expect(asked.toSorted()).toEqual(Object.keys(settings).sort())
  const inTable = readFileSync(new URL('../../HOSTING.md', import.meta.url), 'utf8')
    .split('\n')
    .filter((line) => /^\| `[A-Z]/.test(line))
    .flatMap((line) => [...line.split('|')[1]!.matchAll(/`([A-Z_]+)`/g)].map(([, name]) => name!))
  expect(inTable.sort()).toEqual(asked.toSorted())
  const inHelp = new Set([...helpOf(serveCommand).matchAll(/\b[A-Z]+(?:_[A-Z]+)*\b/g)].map(([name]) => name))
  expect(asked.filter((name) => !inHelp.has(name))).toEqual([])
})

function fileOf(text: string): string {
  const directory = mkdtempSync(join(tmpdir(), 'broadside-settings-'))
  onTestFinished(() => rmSync(directory, { recursive: true }))
  const path = join(directory, 'settings.json')
  writeFileSync(path, text)
  return path
}

test('a settings file has texts, numbers, lists and objects', () => {
  const path = fileOf(
    '{"PORT": 9000, "BASE_URL": "https://board.example", "MCP_ORIGINS": ["https://a.example", "https://b.example"], "HOST": "::1", "LIMITS": {"text_bytes": 100}}',
  )
  const { given } = readSettingsFile(path)!
  expect(readConfig('', Object.fromEntries(given))).toMatchObject({
    host: '::1',
    port: 9000,
    baseUrl: 'https://board.example',
    mcpOrigins: ['https://a.example', 'https://b.example'],
  })
  expect(given.get('LIMITS')).toBe('{"text_bytes":100}')
})

test.each([
  ['{"BASE_ULR": "https://board.example"}', /"BASE_ULR" is not a setting. Did you mean BASE_URL\?/],
  ['{"COLOUR": "blue"}', /"COLOUR" is not a setting. broadside check-config lists them all/],
  ['{"PORT": true}', /PORT must be a string, a number or a list of strings/],
  ['{"LIMITS": true}', /LIMITS must be an object/],
  ['{"PORT": 1, "PORT": 2}', /not JSON: .*PORT/],
  ['{"PORT": 1,}', /not JSON/],
  ['[]', /must be one JSON object/],
])('the settings file %s is refused in a sentence that names the fix', (text, sentence) => {
  const path = fileOf(text)
  const refused = () => readSettingsFile(path)
  expect(refused).toThrow(BadConfig)
  expect(refused).toThrow(sentence)
  expect(refused).toThrow(path)
})

test('the environment takes precedence over the file', () => {
  onTestFinished(() => void vi.unstubAllEnvs())
  vi.stubEnv('BOARD_NAME', 'of the environment')
  vi.stubEnv('BOARD_ABOUT', '')
  fillEnvironment(
    new Map([
      ['BOARD_NAME', 'of the file'],
      ['BOARD_ABOUT', 'of the file'],
    ]),
  )
  expect(readConfig()).toMatchObject({ boardName: 'of the environment', boardAbout: 'of the file' })
})

test('a settings file named explicitly has to exist, and the default one need not', () => {
  expect(() => readSettingsFile('/nowhere/settings.json')).toThrow(BadConfig)
  const here = process.cwd()
  onTestFinished(() => process.chdir(here))
  process.chdir(mkdtempSync(join(tmpdir(), 'broadside-empty-')))
  expect(readSettingsFile(undefined)).toBeUndefined()
})

test('a variable that is almost a setting is reported, those of other programs are not', () => {
  const found = misspelledSettings({
    BASEURL: 'x',
    BORD_NAME: 'x',
    PATH: '/bin',
    HOSTNAME: 'h',
    PORT: '1',
    LOGNAME: 'me',
  })
  expect(found).toEqual([
    ['BASEURL', 'BASE_URL'],
    ['BORD_NAME', 'BOARD_NAME'],
  ])
})

test.each([
  [{ METRICS_PORT: '8787' }, 'METRICS_PORT must be a different port than PORT, which is 8787.'],
  [
    { HEALTH_PORT: '9001', METRICS_PORT: '9001' },
    'METRICS_PORT must be a different port than HEALTH_PORT, which is 9001.',
  ],
  [
    { HOST: '256.1.1.1' },
    'HOST must be an address of this machine, such as 127.0.0.1 or 0.0.0.0, but it is "256.1.1.1"',
  ],
  [{ HOST: '192.0.2.1' }, 'HOST must be an address of this machine'],
  [
    { DATA_DIR: '/srv/board', MARK_FILE: '/srv/board/mark' },
    'MARK_FILE is /srv/board/mark, which is inside of DATA_DIR',
  ],
])('check-config refuses %j, with which no board starts', async (env, words) => {
  for (const command of ['check-config', 'serve']) {
    const { code, output, errors } = await runProgram(scratchDirectory(), process.execPath, [program, command], { env })
    expect([command, code, output, errors]).toEqual([
      command,
      1,
      '',
      expect.stringContaining(command === 'serve' ? 'not_started' : words),
    ])
  }
})

test('check-config accepts ports that are picked at the start, and every address of this machine', async () => {
  for (const env of [{ PORT: '0', HEALTH_PORT: '0', METRICS_PORT: '0' }, { HOST: '0.0.0.0' }, { HOST: 'localhost' }]) {
    const { code, errors } = await runProgram(scratchDirectory(), process.execPath, [program, 'check-config'], { env })
    expect([env, code, errors]).toEqual([env, 0, ''])
  }
})
