/** The peers as processes on this machine: each started on a fresh directory, and how the client talks to it. */
import { type ChildProcess, execFileSync, fork, spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { measure, readyAddress, stop, type Target } from '../board.ts'
import type { Measured } from '../client-process.ts'

const here = import.meta.dirname
export const serviceId = 'peers'

/** Something that accepts posts, measured from a separate client process. */
export type Contestant = {
  readonly name: string
  readonly target: Target
  /** Posts before any counts: fewer if each takes long. */
  readonly warmup: number
  /** Its loads are smaller by this factor. */
  readonly slower: number
  post(inFlight: number, count: number): Promise<Measured>
}

export type Peer = Contestant & { stop(): Promise<void> }

/** Installs missing npm peers, at the versions of the lock file. */
export function installPeers(): void {
  const done = join(here, 'node_modules', '.package-lock.json')
  if (existsSync(done) && statSync(done).mtimeMs >= statSync(join(here, 'package-lock.json')).mtimeMs) return
  console.log('installing the peers of bench/peers/package.json')
  execFileSync('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'], { cwd: here, stdio: 'inherit' })
}

export function isInstalled(program: string): boolean {
  return spawnSync(program, ['--version'], { stdio: 'ignore' }).error === undefined
}

type Work = 'posts' | 'redis' | 'nostr'

/** Starts a program that prints its address, or whose address is `address`. */
async function peer(
  facts: Pick<Contestant, 'name' | 'warmup' | 'slower'>,
  server: ChildProcess,
  { work, port }: { work: Work; port?: number },
): Promise<Peer> {
  const target = { port: port ?? Number(new URL(await readyAddress(server)).port), pid: server.pid! }
  const client = fork(new URL('../client-process.ts', import.meta.url))
  return {
    ...facts,
    target,
    post: (inFlight, count) => {
      const load = work === 'posts' ? { kind: work, serviceId, count } : { kind: work, count }
      return measure(client, { ...target, inFlight, work: load })
    },
    stop: async () => {
      client.disconnect()
      await stop(server)
    },
  }
}

export function startStack(directory: string, mode: 'request' | 'turn'): Promise<Peer> {
  const args = [join(here, 'sqlite-stack.ts'), join(directory, `${mode}.db`), mode]
  const env = { ...process.env, SERVICE_ID: serviceId }
  const server = spawn(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'inherit'] })
  const name = mode === 'turn' ? 'fastify + SQLite, group commit' : 'fastify + SQLite, a transaction each'
  return peer({ name, warmup: mode === 'turn' ? 60_000 : 20_000, slower: mode === 'turn' ? 1 : 2 }, server, {
    work: 'posts',
  })
}

export function startNostr(directory: string): Promise<Peer> {
  const args = [join(here, 'nostr-relay.ts'), join(directory, 'nostr.db')]
  const server = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  return peer({ name: 'nostr relay + SQLite', warmup: 1_500, slower: 8 }, server, { work: 'nostr' })
}

export async function startRedis(directory: string): Promise<Peer> {
  const port = await freePort()
  const args = ['--port', `${port}`, '--bind', '127.0.0.1', '--dir', directory, '--save', '']
  args.push('--appendonly', 'yes', '--appendfsync', 'always')
  const server = spawn('redis-server', args, { stdio: 'ignore' })
  await sleep(500)
  return peer({ name: 'Redis, unsigned', warmup: 20_000, slower: 1 }, server, { work: 'redis', port })
}

const nchan = '/usr/lib/nginx/modules/ngx_nchan_module.so'

export const hasNchan = (): boolean => existsSync(nchan) && spawnSync('nginx', ['-v']).error === undefined

/** nginx with one worker, its tails and posts on the paths of a board. It stores messages in memory and checks no signature. */
export async function startNchan(directory: string): Promise<Target & { stop(): Promise<void> }> {
  const port = await freePort()
  mkdirSync(join(directory, 'nginx'))
  const file = join(directory, 'nginx', 'nginx.conf')
  writeFileSync(
    file,
    `load_module ${nchan};
daemon off;
master_process off;
worker_rlimit_nofile 20000;
pid ${directory}/nginx/pid;
error_log ${directory}/nginx/error.log crit;
events { worker_connections 20000; }
http {
  access_log off;
  client_body_temp_path ${directory}/nginx/body;
  keepalive_requests 1000000;
  nchan_shared_memory_size 256m;
  server {
    listen 127.0.0.1:${port} backlog=4096;
    location = /v1/command { nchan_publisher; nchan_channel_id tail; nchan_message_buffer_length 200; }
    location ~ ^/tail/ { nchan_subscriber http-raw-stream; nchan_channel_id tail; nchan_subscriber_first_message oldest; }
  }
}
`,
  )
  const server = spawn('nginx', ['-p', join(directory, 'nginx'), '-c', file], {
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  await sleep(500)
  return { port, pid: server.pid!, stop: () => stop(server) }
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer().once('error', reject)
    probe.listen(0, '127.0.0.1', () => {
      const address = probe.address()
      probe.close(() => resolve(typeof address === 'object' && address !== null ? address.port : 0))
    })
  })
}
