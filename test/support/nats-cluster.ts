/** Three real nats-servers as one cluster, in their own directory: followers get their journals through it. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { jetstreamManager } from '@nats-io/jetstream'
import { connect, type NatsConnection, nkeyAuthenticator } from '@nats-io/transport-node'
import { createNatsKeyFile } from '../../src/cli/key-file.ts'
import { machine } from '../../src/platform.ts'
import { StreamSeal } from '../../src/replication/stream-seal.ts'
import { natsServer } from '../peers/peers.ts'

type Server = { readonly name: string; readonly port: number; readonly config: string; process?: ChildProcess }

type ClusterOptions = {
  /** A server that syncs only now and then. */
  readonly unsynced?: string
  readonly release?: 'forky' | 'bookworm'
  /** A single server. */
  readonly isSingle?: boolean
}

const running = new Set<ChildProcess>()
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL')
})

/** Decrypts the messages of a board. `directory`: its data directory. */
export function sealOf(directory: string): StreamSeal {
  const { disk, random, clock } = machine
  return new StreamSeal({ disk, random, dataDirectory: directory, wallSeconds: clock.wallSeconds })
}

export class NatsCluster {
  readonly servers: readonly Server[]
  /** Files with the seeds of the board's user, of a read-only user, and of the system user. */
  readonly keyFile: string
  readonly readKeyFile: string
  readonly systemKeyFile: string
  readonly #directory: string
  readonly #release: 'forky' | 'bookworm'

  private constructor(directory: string, servers: readonly Server[], release: 'forky' | 'bookworm') {
    this.#directory = directory
    this.#release = release
    this.servers = servers
    this.keyFile = join(directory, 'board.nk')
    this.readKeyFile = join(directory, 'follower.nk')
    this.systemKeyFile = join(directory, 'system.nk')
  }

  /** Starts it; resolves when every server says that it is ready. */
  static async start(directory: string, options: ClusterOptions = {}): Promise<NatsCluster> {
    const { unsynced, release = 'forky', isSingle = false } = options
    const names = isSingle ? ['n1'] : ['n1', 'n2', 'n3']
    const ports = await freePorts(names.length * 2)
    const routes = names.map((_, index) => `nats://127.0.0.1:${ports[names.length + index]}`)
    mkdirSync(directory, { recursive: true })
    const board = await createNatsKeyFile(join(directory, 'board.nk'))
    const follower = await createNatsKeyFile(join(directory, 'follower.nk'))
    const system = await createNatsKeyFile(join(directory, 'system.nk'))
    const servers = names.map((name, index) => ({
      name,
      port: ports[index]!,
      config: configOf({
        name,
        port: ports[index]!,
        store: join(directory, name),
        // Release 2.9 has no such setting.
        sync: release === 'bookworm' ? '' : `sync_interval: ${name === unsynced ? '2m' : 'always'}`,
        routes: isSingle ? undefined : { own: ports[names.length + index]!, all: routes },
        users: { board, follower, system },
      }),
    }))
    const cluster = new NatsCluster(directory, servers, release)
    await Promise.all(names.map((name) => cluster.startServer(name)))
    return cluster
  }

  /** The settings of a board that publishes here. */
  get env(): Readonly<Record<string, string>> {
    return {
      REPLICATE: this.servers.map(({ port }) => `nats://127.0.0.1:${port}`).join(','),
      REPLICATE_KEY_FILE: this.keyFile,
      REPLICATE_SYSTEM_KEY_FILE: this.systemKeyFile,
    }
  }

  /** The settings of a follower that reads here. */
  get readEnv(): Readonly<Record<string, string>> {
    const { REPLICATE = '' } = this.env
    return { REPLICATE, REPLICATE_KEY_FILE: this.readKeyFile }
  }

  /** Starts a stopped server; resolves when it is ready. `sync`: its setting from now on. */
  async startServer(name: string, sync?: 'always'): Promise<void> {
    const server = this.#server(name)
    const file = join(this.#directory, `${name}.conf`)
    const output = join(this.#directory, `${name}.log`)
    writeFileSync(file, sync === undefined ? server.config : server.config.replace(/(?<=sync_interval: )\w+/, sync))
    const log = openSync(output, 'w')
    server.process = spawn(natsServer(this.#release), ['-c', file], { stdio: ['ignore', log, log] })
    closeSync(log)
    const child = server.process
    running.add(child)
    child.once('exit', () => running.delete(child))
    while (!readFileSync(output, 'utf8').includes('Server is ready')) {
      if (server.process.exitCode !== null) throw new Error(readFileSync(output, 'utf8'))
      await sleep(20)
    }
  }

  /** Connects to the servers as the board does. */
  connection(): Promise<NatsConnection> {
    const seed = Buffer.from(readFileSync(this.keyFile, 'latin1').trim())
    const servers = this.servers.map(({ port }) => `127.0.0.1:${port}`)
    return connect({ servers, authenticator: nkeyAuthenticator(seed) })
  }

  /** The name of the server that leads a stream, once there is one. */
  async leaderOf(stream: string): Promise<string> {
    const connection = await this.connection()
    const { streams } = await jetstreamManager(connection, { checkAPI: false })
    let leader: string | undefined
    while (leader === undefined) leader = (await streams.info(stream)).cluster?.leader
    await connection.close()
    return leader
  }

  /** SIGKILL, and the end of the process. */
  async kill(name: string): Promise<void> {
    const { process: child } = this.#server(name)
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    const ended = once(child, 'exit')
    child.kill('SIGKILL')
    await ended
  }

  async stop(): Promise<void> {
    await Promise.all(this.servers.map(({ name }) => this.kill(name)))
  }

  #server(name: string): Server {
    const found = this.servers.find((server) => server.name === name)
    if (found === undefined) throw new Error(`no server ${name}`)
    return found
  }
}

type ServerConfig = {
  readonly name: string
  readonly port: number
  readonly store: string
  readonly sync: string
  readonly routes: { readonly own: number; readonly all: readonly string[] } | undefined
  readonly users: { readonly board: string; readonly follower: string; readonly system: string }
}

function configOf({ name, port, store, sync, routes, users }: ServerConfig): string {
  const cluster =
    routes === undefined
      ? ''
      : `cluster { name: boards, listen: "127.0.0.1:${routes.own}", routes: ${JSON.stringify(routes.all)} }`
  return `server_name: ${name}
listen: "127.0.0.1:${port}"
jetstream { store_dir: "${store}", ${sync} }
${cluster}
accounts {
  SYSTEM { users: [ { nkey: ${users.system}, permissions: { publish: ["$SYS.REQ.SERVER.PING.VARZ"], subscribe: ["_INBOX.>"] } } ] }
  BOARD { jetstream: enabled, users: [
    { nkey: ${users.board} }
    { nkey: ${users.follower}, permissions: {
      publish: ["$JS.API.STREAM.INFO.*", "$JS.API.CONSUMER.*.>", "broadside.*.copies"]
      subscribe: ["_INBOX.>"]
    } }
  ] }
}
system_account: SYSTEM
`
}

async function freePorts(count: number): Promise<number[]> {
  const listeners = Array.from({ length: count }, () => createServer().listen(0, '127.0.0.1'))
  await Promise.all(listeners.map((listener) => once(listener, 'listening')))
  const ports = listeners.map((listener) => (listener.address() as { readonly port: number }).port)
  await Promise.all(listeners.map((listener) => new Promise((done) => listener.close(done))))
  return ports
}
