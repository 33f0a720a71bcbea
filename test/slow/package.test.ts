/** The package: what the tarball contains, and that it runs in an empty directory under each supported release of Node. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { threadNames } from '../../src/program.ts'
import { randomPart } from '../support/random-part.ts'
import { scratchDirectory } from '../support/scratch.ts'

const project = resolve(import.meta.dirname, '../..')

function run(command: string, args: readonly string[], cwd: string): string {
  const { status, stdout, stderr } = spawnSync(command, args, { cwd, encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 })
  expect(status, `${command} ${args.join(' ')}\n${stdout}\n${stderr}`).toBe(0)
  return stdout
}

function pack(directory: string): { readonly tarball: string; readonly paths: readonly string[] } {
  const [{ filename, files }] = JSON.parse(
    run('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', directory], project),
  ) as [{ filename: string; files: { path: string }[] }]
  return { tarball: join(directory, filename), paths: files.map(({ path }) => path) }
}

test('the package contains built code with declarations and source maps, texts for hosts, and nothing else', () => {
  const { paths } = pack(scratchDirectory())
  const strangers = paths.filter(
    (path) =>
      !/^(dist\/(src|actors|storage)\/.+\.(js|js\.map|d\.ts|css|py)|src\/hosting\/[A-Za-z.]+|package\.json|LICENSE|[A-Z]+\.md)$/.test(
        path,
      ),
  )
  // No compiled code either, whatever has run here: it is for one version of Node.
  expect(strangers).toEqual([])
  expect(paths).toContain('dist/src/cli/main.js')
  // HOSTING.md names them.
  expect(paths).toContain('src/hosting/nginx.conf')
  for (const thread of threadNames) {
    const own = [`dist/src/workers/${thread}/${thread}.js`, `dist/src/workers/${thread}/entry.js`] as const
    expect(paths).toEqual(expect.arrayContaining([...own]))
    // A pool starts the first without the second.
    expect(readFileSync(join(project, own[0]), 'utf8')).not.toContain('/entry.js')
  }
  for (const asset of readdirSync(join(project, 'src/pages/assets')))
    expect(paths).toContain(`dist/src/pages/assets/${asset.replace(/\.ts$/, '.js')}`)
})

/** Node itself comes from npm too: the directory of its program. */
function nodeOf(release: string): string {
  return installed(`node@${release}`, scratchDirectory())
}

/** Installs a package in an empty directory; returns the directory of its programs. */
function installed(name: string, directory: string): string {
  writeFileSync(join(directory, 'package.json'), JSON.stringify({ private: true, allowScripts: { node: true } }))
  run('npm', ['install', '--no-audit', '--no-fund', name], directory)
  return join(directory, 'node_modules/.bin')
}

const shared = mkdtempSync(join(tmpdir(), 'broadside-'))
let bin: string
beforeAll(() => {
  bin = installed(pack(shared).tarball, shared)
})
afterAll(() => rmSync(shared, { recursive: true }))

// uWebSockets.js has binaries for 22; elsewhere node:http is the fallback, with a warning.
test.each(
  randomPart([
    ['22.23.3', 'uws'],
    ['24.21.0', 'node'],
    ['26.10.0', 'node'],
  ]),
)('the package installed in an empty directory runs under Node %s on the engine %s', (release, engine) => {
  const script = `
    set -eu
    PATH=${nodeOf(release)}:${bin}:$PATH
    node --version
    broadside keygen me.json
    broadside serve --data data --port 0 > out 2> err &
    trap 'kill $!; wait $!' EXIT
    for i in $(seq 600); do grep -q http: out && break; sleep 0.1; done
    url=$(grep -o 'http://[0-9.:]*' out)
    broadside post lobby "from an installed package" --key me.json --url $url
    broadside read lobby --url $url
    broadside export --out board.jsonl --url $url
    broadside verify board.jsonl --unpinned
    cat err`
  const compiled = join(bin, '../broadside/dist/compiled')
  rmSync(compiled, { recursive: true, force: true })
  const said = run('bash', ['-c', script], scratchDirectory())
  expect(said).toContain(`v${release}`)
  expect(said).toContain('from an installed package')
  expect(said).toContain(`"engine":"${engine}"`)
  if (engine === 'node') expect(said).toContain('"event":"engine.fallback"')
  // The command line, what it loaded, and threads: later starts need not compile them.
  const [version = ''] = readdirSync(compiled)
  expect(version).toMatch(new RegExp(`^v${release}-`))
  expect(readdirSync(join(compiled, version)).length).toBeGreaterThan(100)
})

test('under a Node that is too old it names the required version', () => {
  const node = join(nodeOf('20.20.2'), 'node')
  const { status, stdout, stderr } = spawnSync(node, [join(project, 'dist/src/cli/main.js'), '--help'], {
    encoding: 'utf8',
  })
  expect([status, stdout, stderr]).toEqual([
    2,
    '',
    expect.stringContaining('needs Node 22.18 or newer, and this is v20.20.2'),
  ])
})
