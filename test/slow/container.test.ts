/**
 * The Containerfile: built and run where Podman is available. Everywhere its commands are run by hand, in a directory with only the files
 * that it copies: the result is a board that starts, with one Node and one binary of each library.
 */
import { spawn, spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { expect, test, vi } from 'vitest'
import { findProgram } from '../peers/peers.ts'
import { filesUnder } from '../support/files-under.ts'
import { patience } from '../support/patience.ts'
import { scratchDirectory } from '../support/scratch.ts'

vi.setConfig({ testTimeout: 900_000, hookTimeout: 900_000 })

const project = resolve(import.meta.dirname, '../..')
const lines = readFileSync(join(project, 'Containerfile'), 'utf8')
  .split('\n')
  .filter((line) => line !== '' && !line.startsWith('#'))
/** The first stage builds the board, and the second runs it. */
const stages = lines.reduce<string[][]>((found, line) => {
  if (line.startsWith('FROM ')) found.push([])
  found.at(-1)!.push(line)
  return found
}, [])
const [build = [], run = []] = stages

function shell(command: string, cwd: string): string {
  const PATH = `${dirname(process.execPath)}:${process.env.PATH}`
  const { status, stdout, stderr } = spawnSync('sh', ['-c', command], {
    cwd,
    encoding: 'utf8',
    env: { ...process.env, PATH },
  })
  expect(status, `${command}\n${stdout}\n${stderr}`).toBe(0)
  return stdout
}

/** Runs the stage with `root` in place of `/`. */
function runStage(stage: readonly string[], root: string): void {
  let here = root
  for (const line of stage) {
    const [word, ...rest] = line.split(' ')
    if (word === 'WORKDIR') {
      here = join(root, rest[0]!)
      mkdirSync(here, { recursive: true })
    }
    if (word === 'COPY') {
      const to = join(here, rest.at(-1)!)
      for (const from of rest.slice(0, -1))
        cpSync(join(project, from), rest.length > 2 || rest.at(-1) === './' ? join(to, from) : to, { recursive: true })
    }
    if (word === 'RUN') shell(rest.join(' ').replaceAll('/build/', `${root}/build/`), here)
  }
}

test('its commands build a board that starts, with one Node and one binary of each library', async () => {
  const root = scratchDirectory()
  runStage(build, root)
  const board = join(root, 'board')
  const native = [...filesUnder(board)].map(([name]) => name).filter((name) => name.endsWith('.node'))
  expect(native.filter((name) => name.includes('uWebSockets'))).toHaveLength(1)
  expect(native.filter((name) => name.includes('sodium-native'))).toHaveLength(1)
  expect(existsSync(join(board, 'node_modules/node'))).toBe(false)
  const bytes = [...filesUnder(board)].reduce((sum, [, content]) => sum + content.length, 0)
  // 372 MB with another Node and the binaries of all platforms.
  expect(bytes).toBeLessThan(60 * 1024 * 1024)
  const [program, ...args] = JSON.parse(
    run.find((line) => line.startsWith('ENTRYPOINT '))!.slice('ENTRYPOINT '.length),
  ) as string[]
  expect([program, ...args]).toEqual(['node', '/board/dist/src/cli/main.js'])
  const main = join(root, args[0]!)
  expect(statSync(main).isFile()).toBe(true)
  const env = { PATH: process.env.PATH, NODE_ENV: 'production', DATA_DIR: join(root, 'data/board'), PORT: '0' }
  const child = spawn(process.execPath, [main, 'serve'], { env, stdio: ['ignore', 'pipe', 'pipe'] })
  const ended = new Promise((done) => child.once('close', done))
  let words = ''
  child.stderr.on('data', (chunk: Buffer) => {
    words += chunk.toString()
  })
  const address = await new Promise<string>((done, reject) => {
    createInterface({ input: child.stdout }).on('line', (line) => done(/ready at (\S+)$/.exec(line)?.[1] ?? ''))
    void ended.then(() => reject(new Error(words)))
  })
  expect(await (await fetch(`${address}/healthz`)).text()).toBe('ok\n')
  // uWebSockets.js, and not the fallback engine.
  expect(words).not.toContain('engine.fallback')
  // Its own health check says so, and fails when nothing answers.
  const check = /^HEALTHCHECK .*CMD node -e "(.*)"$/.exec(run.find((line) => line.startsWith('HEALTHCHECK '))!)![1]!
  const health = (port: string) => spawnSync(process.execPath, ['-e', check], { env: { PORT: port } }).status
  expect([health(new URL(address).port), health('1')]).toEqual([0, 1])
  child.kill('SIGTERM')
  await ended
})

test('the image runs as a user other than root, on one volume, on the Node that the tests run on', () => {
  expect(run).toContain('USER node')
  expect(run.filter((line) => line.startsWith('VOLUME '))).toEqual(['VOLUME /data'])
  const { devDependencies } = JSON.parse(readFileSync(join(project, 'package.json'), 'utf8')) as {
    devDependencies: Record<string, string>
  }
  for (const [from] of stages) expect(from).toContain(`node:${devDependencies.node}-`)
})

// The base image comes from a registry that CI cannot reach: it is built only where there is a builder.
const builder = findProgram('podman')
if (builder === undefined) console.warn('the image is not built: there is no podman on this machine')
else
  test('Podman builds it, and the board in it answers', async () => {
    shell('podman build -t broadside-test .', project)
    const id = shell('podman run -d -P broadside-test', project).trim()
    try {
      const [, port] = /:(\d+)$/m.exec(shell(`podman port ${id} 8787`, project).trim())!
      await vi.waitFor(async () => expect((await fetch(`http://127.0.0.1:${port}/healthz`)).status).toBe(200), {
        ...patience,
        interval: 500,
      })
      expect(shell(`podman exec ${id} id -u`, project).trim()).not.toBe('0')
    } finally {
      shell(`podman rm -f ${id}`, project)
    }
  })
