/** Texts for readers of the repository: their links work, and the commands they show can be run. */
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { expect, test } from 'vitest'
import { commandNames } from '../src/cli/main.ts'

const root = resolve(import.meta.dirname, '..')
const tracked = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], {
  cwd: root,
  encoding: 'utf8',
})
const texts = tracked.split('\n').filter((file) => file.endsWith('.md') && existsSync(join(root, file)))

function read(file: string): string {
  return readFileSync(join(root, file), 'utf8')
}

/** A text without fenced code, where `[x](y)` is no link and `#` no heading. */
function prose(file: string): string {
  return read(file).replace(/^```[\s\S]*?^```/gm, '')
}

/** The addresses of headings, as GitHub makes them. */
function anchorsOf(file: string): ReadonlySet<string> {
  const headings = [...prose(file).matchAll(/^#{1,6} (.+)$/gm)]
  return new Set(headings.map(([, text]) => anchorOf(text!)))
}

function anchorOf(heading: string): string {
  const kept = heading.toLowerCase().replace(/[^\p{Letter}\p{Number}\s_-]/gu, '')
  return kept.replaceAll(' ', '-')
}

test('every relative link points to an existing file, and to one of its headings', () => {
  const broken = texts.flatMap((file) =>
    [...prose(file).matchAll(/\]\(([^)\s]+)\)/g)].flatMap(([, target]) => {
      if (/^[a-z]+:/.test(target!)) return []
      const [path = '', anchor] = target!.split('#')
      const linked = path === '' ? file : join(dirname(file), path)
      if (!existsSync(join(root, linked))) return `${file}: ${target}: there is no ${linked}`
      if (anchor === undefined || anchorsOf(linked).has(anchor)) return []
      return `${file}: ${target}: ${linked} has no such heading`
    }),
  )
  expect(broken).toEqual([])
})

test('every file and folder that a text mentions as code exists', () => {
  const named = /`((?:src|actors|storage|test|bench|\.ci)\/[\w./<>*-]*)`/g
  const missing = texts.flatMap((file) =>
    [...read(file).matchAll(named)]
      .map(([, path]) => path!)
      .filter((path) => !/[<>*]/.test(path) && !existsSync(join(root, path)) && !isMadeByRuns(path))
      .map((path) => `${file} names ${path}`),
  )
  expect(missing).toEqual([])
})

/** Results of benches, which a run writes. */
function isMadeByRuns(path: string): boolean {
  return path.startsWith('bench/results/')
}

test('every npm script that a text shows exists', () => {
  const { scripts } = JSON.parse(read('package.json')) as { scripts: Readonly<Record<string, string>> }
  const unknown = texts.flatMap((file) =>
    [...read(file).matchAll(/\bnpm (?:run (?:-s )?([\w:-]+)|(start|test)\b)/g)]
      .map(([, run, short]) => run ?? short!)
      .filter((name) => !Object.hasOwn(scripts, name))
      .map((name) => `${file}: npm run ${name}`),
  )
  expect(unknown).toEqual([])
})

test('every test that a text shows how to run exists', () => {
  const paths = tracked.split('\n').filter((file) => file.endsWith('.test.ts'))
  const shown = /\bnpm (?:test|run (test:slow|test:one)) -- ([\w./-]*\w)/g
  const unknown = texts.flatMap((file) =>
    [...read(file).matchAll(shown)]
      .filter(([, script, name]) => {
        const among = script === 'test:slow' ? paths.filter((path) => path.startsWith('test/slow/')) : paths
        return !/^(FILE|NAME)$/.test(name!) && !among.some((path) => path.includes(name!))
      })
      .map(([all]) => `${file}: ${all}`),
  )
  expect(unknown).toEqual([])
})

test('every broadside command that a text shows exists', () => {
  const commands = new Set<string>(commandNames)
  const shown = /(?:`broadside |npm run broadside -- |^broadside |broadside && broadside )([a-z]+(?:-[a-z]+)*)/gm
  const unknown = texts.flatMap((file) =>
    [...read(file).matchAll(shown)]
      .map(([, name]) => name!)
      .filter((name) => !commands.has(name))
      .map((name) => `${file}: broadside ${name}`),
  )
  expect(unknown).toEqual([])
})

test('no text shows an install by name: the package is installed from its tarball', () => {
  const byName = /\b(npx(?: -y| --yes)?|npm (?:i|install|exec)(?: -g| --global)?|pnpm add|yarn add) broadside\b/
  expect(texts.filter((file) => byName.test(read(file)))).toEqual([])
})
