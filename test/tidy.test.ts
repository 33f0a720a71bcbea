/**
 * House rules that run. Each failure names the file, the rule, and what to do instead.
 */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { parseAst } from 'vitest/node'

const root = fileURLToPath(new URL('..', import.meta.url))

/** Files that are part of the project: in git, or new and not ignored. */
const files = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], {
  cwd: root,
  encoding: 'utf8',
})
  .split('\n')
  .filter((file) => file !== '' && exists(file))
const sources = files.filter((file) => file.endsWith('.ts'))
const house = sources.filter((file) => /^(src|actors|storage)\//.test(file))

function exists(file: string): boolean {
  try {
    readFileSync(join(root, file))
    return true
  } catch {
    return false
  }
}

function read(file: string): string {
  return readFileSync(join(root, file), 'utf8')
}

/** The modules a file imports, as project paths (relative ones) or package names. Types count: they bind as tightly. */
function importsOf(file: string): string[] {
  const text = read(file)
  const found: string[] = []
  for (const [, specifier] of text.matchAll(/(?:^|\n)\s*(?:import|export)\b[^'";]*?\bfrom\s+'([^']+)'/g))
    found.push(specifier!)
  for (const [, specifier] of text.matchAll(/\bimport\('([^']+)'\)/g)) found.push(specifier!)
  // What an open interface contains depends on the file that declares it.
  for (const [, specifier] of text.matchAll(/^declare module '(\.[^']+)'/gm)) found.push(specifier!)
  return found.map((specifier) => (specifier.startsWith('.') ? normalize(join(dirname(file), specifier)) : specifier))
}

/** Roles: what a kind of file never imports, whatever folder it is in. */
const roles: readonly (readonly [role: string, is: RegExp, neverImports: RegExp, instead: string])[] = [
  [
    'the pure core of a capability',
    /^actors\/(?!kernel\/)[\w-]+\//,
    /^node:(?!crypto$|buffer$|util$)/,
    'it decides and remembers: files, sockets, threads and clocks are handed in, or belong to its shell in src',
  ],
  [
    'a declaration',
    /^actors\/.*(operations|results)\.ts$/,
    /\/(decide|state|market|shard|record|board|event-index)\.ts$/,
    'a declaration says what is promised, and never how it is kept; every command of the command line loads it',
  ],
  [
    'a page',
    /^src\/(pages\/|.*-?page\.ts$)/,
    /^(actors\/.*\/decide\.ts|src\/(board|command|workers|http)\/|src\/.*plans\.ts)/,
    'a page asks what the API asks, by the operations it names',
  ],
  [
    'a read',
    /^src\/(?!board\/|command\/|http\/|workers\/|cli\/)(.*[-/])?(reads|view)\.ts$/,
    /^src\/(board|command|workers|http|pages|cli)\/|\/(plans|routes)\.ts$/,
    'a read looks at state and records, on any thread',
  ],
  [
    'a kit of src',
    /^src\/(command|format|http|money|outgoing|own-tools|pages|rates|reads|runtime|verify)\//,
    /^src\/(?!(command|format|http|money|outgoing|own-tools|pages|rates|reads|runtime|verify)\/|[\w-]+\.ts$)/,
    'it knows no capability: it declares what it needs, and the capability fills that in',
  ],
  [
    'a capability',
    /^src\/(?!board\/|cli\/|workers\/)[\w-]+\//,
    /^src\/(board|cli|workers)\//,
    'the tables, the threads and the server know the capabilities, and no capability knows them',
  ],
  [
    'a capability of actors',
    /^actors\/[\w-]+\//,
    /^actors\/[\w-]+\.ts$/,
    'the shard, the state and the tables know the capabilities, and no capability knows them',
  ],
  [
    'a kit of actors',
    /^actors\/(kernel|records)\//,
    /^actors\/(?!kernel\/|records\/)/,
    'it knows no capability: it declares what it needs, and the table above fills that in',
  ],
  ['the command line', /^src\/(?!cli\/)/, /^src\/cli\//, 'nothing is built on the command line'],
  [
    'the server',
    /^src\/(?!cli\/|board\/server\.ts$)/,
    /^src\/board\/server\.ts$/,
    'the server wires parts; no part knows it',
  ],
]

function faults(check: (file: string) => string | undefined, among = house): string[] {
  return among.flatMap((file) => check(file) ?? []).map((fault) => fault)
}

test('storage imports only node, packages and itself; actors import storage; src imports both; nobody imports test or bench', () => {
  const wrong = faults((file) => {
    const bad = importsOf(file).find((target) => {
      if (/^(test|bench)\//.test(target)) return true
      if (file.startsWith('storage/')) return /^(src|actors)\//.test(target)
      return file.startsWith('actors/') && target.startsWith('src/')
    })
    return bad === undefined
      ? undefined
      : `${file} imports ${bad}: the direction is src -> actors -> storage, and nothing imports test or bench`
  })
  expect(wrong).toEqual([])
})

test('actors know nothing of HTTP, JSON schema or signatures, and storage nothing of rooms', () => {
  const wrong = faults((file) => {
    const packages = importsOf(file).filter(
      (target) => !/^(src|actors|storage)\//.test(target) && !target.startsWith('node:'),
    )
    const allowed = file.startsWith('storage/')
      ? ['flatbuffers']
      : file.startsWith('actors/')
        ? ['msgpackr/pack', 'diff/lib/diff/array.js']
        : undefined
    const bad = allowed === undefined ? undefined : packages.find((name) => !allowed.includes(name))
    return bad === undefined ? undefined : `${file} imports the package ${bad}: it belongs into src`
  })
  expect(wrong).toEqual([])
})

test('MessagePack is imported in one place, which says why it is not the whole package', () => {
  const importers = sources.filter((file) => importsOf(file).some((target) => /^msgpackr\b/.test(target)))
  expect(importers).toEqual(['actors/kernel/msgpack.ts'])
})

test('no imports are circular', () => {
  const circles: string[] = []
  const done = new Set<string>()
  const visit = (file: string, path: readonly string[]): void => {
    if (path.includes(file)) {
      circles.push([...path.slice(path.indexOf(file)), file].join(' -> '))
      return
    }
    if (done.has(file)) return
    for (const target of importsOf(file)) if (sources.includes(target)) visit(target, [...path, file])
    done.add(file)
  }
  for (const file of house) visit(file, [])
  expect(circles).toEqual([])
})

/** What each folder imports, by the name that `folderOf` gives to the folder of a file, with an example file. */
function foldersOf(folderOf: (file: string) => string, among: ReadonlySet<string>): Map<string, Map<string, string>> {
  const folders = new Map<string, Map<string, string>>()
  for (const file of among) {
    const folder = folderOf(file)
    const imported = folders.get(folder) ?? new Map<string, string>()
    folders.set(folder, imported)
    for (const target of importsOf(file))
      if (among.has(target) && folderOf(target) !== folder) imported.set(folderOf(target), file)
  }
  return folders
}

/** The layer of each folder: above everything that it imports. Throws if imports are circular. */
function floorsOf(folders: ReadonlyMap<string, ReadonlyMap<string, string>>): Map<string, number> {
  const floors = new Map<string, number>()
  const floorOf = (folder: string, path: readonly string[]): number => {
    const known = floors.get(folder)
    if (known !== undefined) return known
    const from = path.indexOf(folder)
    if (from >= 0) {
      const circle = [...path.slice(from), folder]
      const by = circle.slice(1).map((next, n) => `${folders.get(circle[n]!)!.get(next)} imports ${next}`)
      throw new Error(`folders import in a circle: ${by.join(', ')}`)
    }
    const below = [...folders.get(folder)!.keys()].map((next) => floorOf(next, [...path, folder]))
    const floor = Math.max(0, ...below) + 1
    floors.set(folder, floor)
    return floor
  }
  for (const folder of folders.keys()) floorOf(folder, [])
  return floors
}

test('folders import in one direction', () => {
  // The files in src itself have one purpose each, and count as folders.
  const folder = (file: string): string => (/^src\/[^/]+$/.test(file) ? file : dirname(file))
  expect(() => floorsOf(foldersOf(folder, new Set(house)))).not.toThrow()
})

test('the code has at most 10 layers: storage, actors, each folder of src, bench', () => {
  const benches = sources.filter((file) => file.startsWith('bench/'))
  const room = (file: string): string => /^src\/[^/]+|^[^/]+/.exec(file)![0]
  const floors = floorsOf(foldersOf(room, new Set([...house, ...benches])))
  const tooHigh = [...floors].filter(([, floor]) => floor > 10)
  expect(tooHigh, 'move what ties two folders to the lower one, or declare an open interface there').toEqual([])
})

for (const [role, is, neverImports, instead] of roles) {
  test(`${role}: ${instead}`, () => {
    const wrong = faults((file) => {
      const bad = is.test(file) ? importsOf(file).find((target) => neverImports.test(target)) : undefined
      return bad === undefined ? undefined : `${file} imports ${bad}: ${instead}`
    })
    expect(wrong).toEqual([])
  })
}

/** A node of a syntax tree, as far as casts are concerned. */
type Node = { readonly type: string; readonly start: number; readonly end: number } & Readonly<Record<string, unknown>>

const isNode = (value: unknown): value is Node => typeof (value as Node | null)?.type === 'string'

function visit(node: Node, take: (node: Node) => void): void {
  take(node)
  for (const key in node) {
    const value = node[key]
    if (Array.isArray(value)) {
      for (const child of value) if (isNode(child)) visit(child, take)
    } else if (typeof value === 'object' && isNode(value)) visit(value, take)
  }
}

/** Casts at the edges: each of these numbers may fall and never rise. */
const castsMax = { typed: 10, parsed: 12, twice: 13, parses: 40 }
/** Names whose types follow the declarations. */
const declaredNames =
  /^\(*(?:[\w#$]+[!?]*\.)*(?:facts|args|data|command|reply|letter|verified)\b[\w.!?[\]]*(?:\s*\?\?[\s\S]*)?\)*$/

test('declared types are not cast: facts, arguments, data, command fields, replies and parsed JSON', () => {
  const found = { typed: [] as string[], parsed: [] as string[], twice: [] as string[], parses: [] as string[] }
  // The client imports nothing, so it parses the answers of boards itself.
  for (const file of house.filter((each) => each !== 'src/client/broadside.ts')) {
    const text = read(file)
    const textOf = ({ start, end }: Node): string => text.slice(start, end)
    const lineOf = ({ start }: Node): string => `${file}:${text.slice(0, start).split('\n').length}`
    if (!/\bas (?!const\b)|JSON\.parse/.test(text)) continue
    visit(parseAst(text, { lang: 'ts' }) as unknown as Node, (node) => {
      const { type, expression, typeAnnotation, callee } = node
      if (type === 'CallExpression' && isNode(callee) && textOf(callee) === 'JSON.parse')
        found.parses.push(lineOf(node))
      if (type !== 'TSAsExpression' || !isNode(expression) || !isNode(typeAnnotation)) return
      if (/^(const|unknown)$/.test(textOf(typeAnnotation))) return
      const cast = textOf(expression)
      if (expression.type === 'TSAsExpression' && cast.endsWith('as unknown')) found.twice.push(lineOf(node))
      else if (cast.includes('JSON.parse(')) found.parsed.push(lineOf(node))
      else if (declaredNames.test(cast)) found.typed.push(lineOf(node))
    })
  }
  for (const [kind, most] of Object.entries(castsMax)) {
    const lines = found[kind as keyof typeof found]
    expect(lines.length, `${kind}: ${lines.join(' ')}`).toBeLessThanOrEqual(most)
  }
})

test('a file name says what is in it', () => {
  const wrong = faults(
    (file) =>
      /(utils?|helpers?|misc|common|manager)\b/i.test(file) ? `${file}: name the thing, not the drawer` : undefined,
    sources,
  )
  expect(wrong).toEqual([])
})

test('every file opens with the one reason why it exists', () => {
  const wrong = faults((file) => (/^(#!.*\n)?\/\*\*/.test(read(file)) ? undefined : `${file} has no header comment`))
  expect(wrong).toEqual([])
})

const words: readonly (readonly [rule: string, pattern: RegExp, allowed: RegExp])[] = [
  [
    'only storage/machine-disk.ts syncs: call the disk that is handed in',
    /\b(fsync|fdatasync)(Sync)?\(/,
    /^storage\/machine-disk\.ts$/,
  ],
  [
    // The lock is between processes of one machine. SQLite opens files itself, and fsck checks copies of them. The rest reads what is
    // installed or what the operator wrote (programs, styles, source maps, limits, a wallet's key), asks who owns a file, or is run by a
    // person (the command line, the build, the client and the program of /for-agents).
    'a board keeps its files on the disk that is handed in',
    /\bfrom 'node:fs(\/promises)?'/,
    /^(storage\/(machine-disk|lock)|src\/(search\/search-index|fsck\/fsck|program|observe|failure|http\/engine|pages\/assets|sign-in\/sign-in-page|payments\/wallet|build|cli\/.*|client\/served|docs\/for-agents\/programs))\.ts$/,
  ],
  [
    // The directories of SQLite's files, and a mirror, which is a command's.
    'only the platform takes the disk of this machine: be handed one',
    /\bmachineDisk\b/,
    /^(storage\/machine-disk|src\/(platform|search\/search-index|webhooks\/store|cli\/mirror-store))\.ts$/,
  ],
  [
    // The program that /for-agents serves and the client run elsewhere. The machine's disk measures how long its own reads take.
    'only src/clock.ts reads a clock: be handed one',
    /\b(Date\.now|performance\.now)\(|\bnew Date\(\)/,
    /^(storage\/machine-disk|src\/(clock|client\/broadside|docs\/for-agents\/programs))\.ts$/,
  ],
  [
    'only the platform, the server log and the command line take the clock of this machine: be handed one',
    /\bimport \{[^}]*\bsystemClock\b/,
    /^src\/(platform|observe|cli\/.*)\.ts$/,
  ],
  [
    // The socket libraries own the timers of the engines; the command line, the client and the program of /for-agents run on their own.
    'only src/clock.ts sets timers: be handed them',
    /(?<!\.)\b(setTimeout|setInterval|setImmediate)\(/,
    /^src\/(clock|cli\/.*|client\/broadside|http\/(uws|uws-stream|node|held-answer)|docs\/for-agents\/programs)\.ts$/,
  ],
  [
    // Code run by piscina is told its backend this way.
    'a thread is a plain function: only the entry knows that it is a worker',
    /\b(parentPort|workerData)\b/,
    /^src\/(platform|workers\/(entry|verify)|runtime\/thread-pool)\.ts$/,
  ],
  [
    'only the platform starts threads and makes channels: be handed it',
    /\b(MessageChannel|new Worker|Piscina)\b/,
    /^src\/(platform|runtime\/thread-pool)\.ts$/,
  ],
  [
    // Besides the command line: names of files, secret seeds of hash tables, and ids of faults, on which no answer depends.
    'chance comes from src/platform.ts: be handed it',
    /\b(randomBytes|randomUUID|randomInt|getRandomValues|Math\.random)\(/,
    /^(src\/(platform|cli\/.*|client\/broadside|http\/engine|workers\/thread|docs\/for-agents\/programs)|storage\/(machine-disk|journal)|actors\/records\/(id-table|retry-memory))\.ts$/,
  ],
  [
    'only src/environment.ts reads the environment (and limits, which schemas need before there is a configuration)',
    /\bprocess\.env\b/,
    /^(src\/environment|actors\/kernel\/limits-given)\.ts$/,
  ],
  ['no `any`: say the type', /\bas any\b|:\s*any\b/, /^$/],
  ['finish it, or say so in an issue', /\b(TODO|FIXME|XXX)\b/, /^$/],
  ['no default export: import the thing you mean', /^export default\b/m, /^$/],
  [
    'src/node-http.ts has it: an import also loads the fetch of Node',
    /^import (?!type )[^']* from 'node:http'/m,
    /^src\/node-http\.ts$/,
  ],
  ['only src/http/uws.ts knows that engine', /['"]uWebSockets\.js['"]/, /^src\/http\/uws/],
]

for (const [rule, pattern, allowed] of words) {
  test(`${rule}`, () => {
    const wrong = faults((file) => {
      const code = read(file).replace(/\/\*[\s\S]*?\*\/|(^|\s)\/\/.*$/gm, '$1')
      const match = allowed.test(file) ? null : pattern.exec(code)
      return match === null ? undefined : `${file}: ${match[0]}: ${rule}`
    })
    expect(wrong).toEqual([])
  })
}

test('no test is silently skipped or focused', () => {
  const wrong = faults(
    (file) =>
      /\b(it|test|describe)\.(skip|only|todo)\(/.test(read(file))
        ? `${file} skips or focuses: use a condition that says its reason`
        : undefined,
    sources.filter((file) => file.startsWith('test/') && file !== 'test/tidy.test.ts'),
  )
  expect(wrong).toEqual([])
})

test('waits in tests may take as long as a slow machine needs', () => {
  const wrong = faults(
    (file) => {
      const text = read(file)
      if (!text.includes('vi.waitFor(')) return undefined
      const hasty: string[] = []
      visit(parseAst(text, { lang: 'ts' }) as unknown as Node, (node) => {
        const { type, callee, arguments: given } = node
        if (type !== 'CallExpression' || !isNode(callee) || !Array.isArray(given)) return
        if (text.slice(callee.start, callee.end) === 'vi.waitFor' && given.length === 1)
          hasty.push(text.slice(node.start, node.end))
      })
      return hasty.length === 0 ? undefined : `${file}: without an argument it gives up after 1 s: ${hasty.join(', ')}`
    },
    sources.filter((file) => file.startsWith('test/') && file !== 'test/tidy.test.ts'),
  )
  expect(wrong, 'give it `patience` of test/support/patience.ts').toEqual([])
})

test('every dependency has an exact version, and the lock file names no address', () => {
  const { dependencies, devDependencies } = JSON.parse(read('package.json')) as Record<string, Record<string, string>>
  const loose = Object.entries({ ...dependencies, ...devDependencies }).filter(
    ([, version]) => !/^(npm:[^@]+@)?\d+\.\d+\.\d+(-[\w.]+)?$/.test(version),
  )
  expect(loose).toEqual([])
  expect(read('package-lock.json')).not.toContain('"resolved"')
})

test('the code depends only on packages that package.json names', () => {
  const { dependencies, devDependencies } = JSON.parse(read('package.json')) as Record<string, Record<string, string>>
  const wrong = faults((file) => {
    const named = file === 'src/build.ts' ? { ...dependencies, ...devDependencies } : dependencies!
    const stranger = importsOf(file).find((target) => {
      const [, name = ''] = /^((?:@[^/]+\/)?[^/]+)/.exec(target) ?? []
      return !/^(src|actors|storage)$/.test(name) && !target.startsWith('node:') && !Object.hasOwn(named, name)
    })
    return stranger === undefined ? undefined : `${file} imports ${stranger}: add it to the dependencies, or do without`
  })
  expect(wrong).toEqual([])
})

test('every test that the list of the log’s invariants names exists', () => {
  const cited = [...read('test/slow/big-log.test.ts').matchAll(/^ \* {3}- (\S+) "(.+)"$/gm)]
  expect(cited.length).toBeGreaterThan(50)
  const missing = cited.filter(([, file, title]) => {
    const source = exists(`test/${file}`) ? read(`test/${file}`) : ''
    const start = title!.replace(/…$/, '')
    return !['`', "'"].some((quote) => source.includes(`${quote}${start}`))
  })
  expect(missing.map(([line]) => line)).toEqual([])
})

test('the top level holds what the project plan names', () => {
  const known = new Set([
    'package.json',
    'package-lock.json',
    'tsconfig.json',
    'README.md',
    'LICENSE',
    'NOTICE',
    'HOSTING.md',
    'CONTRIBUTING.md',
    'SECURITY.md',
    'CHANGELOG.md',
    'Containerfile',
    '.gitignore',
    'src',
    'actors',
    'storage',
    'bench',
    'test',
    '.ci',
  ])
  const strangers = [...new Set(files.map((file) => file.split('/')[0]!))].filter((name) => !known.has(name))
  expect(strangers).toEqual([])
})
