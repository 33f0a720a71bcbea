import { spawnSync } from 'node:child_process'
import { closeSync, existsSync, openSync } from 'node:fs'
import { expect, test } from 'vitest'
import { operations } from '../../../actors/operations.ts'
import { main } from '../../../src/cli/main.ts'
import { inertJson } from '../../../src/cli/terminal.ts'
import { program } from '../../support/program.ts'
import { capturedTerminal } from './captured-terminal.ts'

const commands = [
  'serve',
  'login',
  'whoami',
  'keygen',
  'post',
  'reply',
  'edit',
  'vote',
  'take-back',
  'attach',
  'read',
  'thread',
  'tail',
  'search',
  'inbox',
  'room',
  'docs',
  'work',
  'webhook',
  'moderate',
  'call',
  'import',
  'export',
  'mirror',
  'verify',
  'tools',
  'log',
  'restored',
  'fsck',
  'bench',
  'demo',
  'completion',
]

async function run(...argv: string[]) {
  const terminal = capturedTerminal()
  return { code: await main(argv, terminal), ...terminal.said }
}

test('the overview names every command', async () => {
  const { code, out } = await run('--help')
  expect(code).toBe(0)
  for (const command of commands) expect(out).toContain(`\n  ${command} `)
})

test('text by strangers is inert in every error message', async () => {
  const hostile = '\u001b[31m\u009b\u202e'
  for (const argv of [
    [hostile],
    ['serve', `--${hostile}`],
    ['post', hostile, 'x'],
    ['read', 'lobby', '--url', hostile],
  ]) {
    const { code, err } = await run(...argv)
    expect([code, err]).toEqual([expect.toBeOneOf([1, 2]), expect.stringContaining('\\u{1b}[31m\\u{9b}\\u{202e}')])
  }
})

test.each(commands)('%s --help shows its syntax, every option, one example and the exit codes', async (command) => {
  const { code, out } = await run(command, '--help')
  expect(code).toBe(0)
  expect(out.startsWith(`broadside ${command}`)).toBe(true)
  expect(out.match(/Example:\n {2}broadside /g)).toHaveLength(1)
  expect(out).toContain('Exit codes: 0 done')
})

test.each([
  [[], 'broadside COMMAND'],
  [['serv'], 'no command "serv". Did you mean "serve"?'],
  [['read'], 'An argument is missing. Usage: broadside read'],
  [['read', 'a', 'b'], '"b" is one argument too many. Usage: broadside read'],
  [['read', 'lobby', '--limt', '3'], 'broadside read --help'],
  [['read', 'lobby', '--limit', 'many'], '--limit takes a whole number from 1 to'],
  [['read', 'lobby', '--limit', '0'], '--limit takes a whole number from 1 to'],
  [['read', 'Lobby!'], 'cannot be a room'],
  [['tail', 'lobby', '--since', 'xyz'], '--since takes an event id'],
  [['tail', 'lobby', '--format', 'xml'], 'text, line or json'],
  [['verify', 'package.json', '--vkey', 'nonsense'], 'is not a log'],
  [['read', 'lobby', '--limt', '3'], 'Did you mean "--limit"?'],
  [['work', 'clam', 'x'], 'work has no subcommand "clam". Did you mean "work claim"?'],
  [['work'], 'work needs a subcommand'],
  [['work', 'claim'], 'Usage: broadside work claim EVENT_ID [options]'],
  [['call', 'pots'], 'There is no operation "pots". Did you mean "post"?'],
  [['call', 'post', 'txt=x'], 'post has no field "txt"; did you mean text?'],
  [['call', 'post', 'text'], 'is not name=value'],
  [['call', 'work.claim', 'ttl=soon'], 'ttl must be a number'],
  [['vote', '0'.repeat(32), 'maybe'], 'A vote is up, down or none'],
  [['reply', 'lobby', 'x'], 'is not an event id'],
  [['completion', 'tcsh'], 'bash, zsh or fish'],
])('%j is an invalid command line: exit code 2 and a sentence', async (argv, sentence) => {
  const { code, err } = await run(...argv)
  expect(code).toBe(2)
  expect(err).toContain(sentence)
})

test.each([
  [['post', 'lobby', 'text', '--key', 'no-such-key.json'], 'broadside keygen no-such-key.json'],
  [['read', 'lobby', '--url', 'ftp://x'], 'http://127.0.0.1:8787'],
  [['verify', 'no-such-file.jsonl'], 'no-such-file.jsonl cannot be read'],
  [['post', 'lobby', 'text', '--key', 'test'], 'test is not a file'],
  [['verify', 'x'.repeat(300)], 'Check that name, its permissions and the free space on its disk.'],
  [['mirror', 'http://127.0.0.1:1', 'package.json'], 'package.json cannot be the directory of a mirror (EEXIST'],
  [['mirror', 'http://127.0.0.1:1', 'package.json/x'], 'Name a new directory, or that of an earlier run'],
])('%j fails: exit code 1 and a sentence', async (argv, sentence) => {
  const { code, err } = await run(...argv)
  expect(code).toBe(1)
  expect(err).toContain(sentence)
})

// A device that refuses every byte, like a full disk.
test.skipIf(!existsSync('/dev/full'))('a failure to write to standard output is reported in one sentence', () => {
  const full = openSync('/dev/full', 'w')
  const { status, stderr } = spawnSync(process.execPath, [program, '--help'], {
    stdio: ['ignore', full, 'pipe'],
    encoding: 'utf8',
  })
  closeSync(full)
  expect(stderr).toMatch(/^Standard output is incomplete \(.*ENOSPC.*\)\. .*\n$/)
  expect(status).toBe(1)
})

test('JSON for a terminal is the same value, without cursor movement or reversed lines', () => {
  const value = { text: 'a\u009b31m\u202eb\u007f\u{e0041}\u2028\n\t\u001b é 😀', list: [1, null] }
  for (const indent of [0, 2]) {
    const shown = inertJson(value, indent)
    expect(JSON.parse(shown)).toEqual(value)
    expect(shown.replaceAll('\n', '')).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u)
    expect(shown).toContain('é 😀')
  }
  expect(inertJson('\u009b')).toBe('"\\u009b"')
})

test('an export that cannot be stored is refused before the board is contacted', async () => {
  const { code, err } = await run('export', '--url', 'http://127.0.0.1:1', '--out', '/nonexistent/x')
  expect(code).toBe(1)
  expect(err).toContain('/nonexistent/x.part')
  expect(err).not.toContain('Run it again')
})

test('every operation can be called with call, and those of a family by their own words', async () => {
  const { out } = await run('help', 'call')
  for (const { name } of operations) expect(out).toContain(` ${name}`)
  for (const { name } of operations.filter((each) => /^(room|docs|work|webhook)\./.test(each.name))) {
    const words = name.split(/[._]/)
    expect([name, (await run('help', ...words)).out]).toEqual([
      name,
      expect.stringContaining(`broadside ${words.join(' ')}`),
    ])
  }
})

test('--version prints one line, and help COMMAND prints its --help', async () => {
  expect((await run('--version')).out).toMatch(/^broadside \d+\.\d+\.\d+\S*\n$/)
  expect(await run('help', 'tail')).toEqual(await run('tail', '--help'))
})

test.each(['bash', 'zsh', 'fish'])(
  'completion for %s lists commands, subcommands and operations, and is valid in that shell',
  async (shell) => {
    const { code, out } = await run('completion', shell)
    expect(code).toBe(0)
    for (const word of ['whoami', 'dispute', 'docs.write']) expect(out).toContain(word)
    const checked = spawnSync(shell, ['-n'], { input: out, encoding: 'utf8' })
    // A shell that is not installed here is skipped.
    if (checked.error === undefined) expect([checked.status, checked.stderr]).toEqual([0, ''])
  },
)

test('bash completes a subcommand', async () => {
  const { out } = await run('completion', 'bash')
  const ask = `${out}\nCOMP_CWORD=2; _broadside broadside di work; echo "\${COMPREPLY[@]}"`
  expect(spawnSync('bash', ['-c', ask], { encoding: 'utf8' }).stdout).toBe('dispute\n')
})
