/** A real proxy in front of a board, with the actual file from src/hosting: only ports and certificates are filled in. */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import type { IncomingHttpHeaders } from 'node:http'
import { request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TLSSocket, connect as tlsConnect } from 'node:tls'
import { freePort } from '../../src/listening.ts'
import { findProgram } from '../peers/peers.ts'
import { localCertificate, localKey } from './certificate.ts'
import { RawConnection } from './raw-http.ts'

/** The name of the board in those files. */
export const siteName = 'board.example'

export type ProxyRequest = {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Buffer
  /** An address of this machine to send from, IPv4 or IPv6. */
  readonly from?: string
}
export type ProxyResponse = { readonly status: number; readonly headers: IncomingHttpHeaders; readonly body: Buffer }

type ProxySetup = {
  readonly folder: string
  readonly port: number
  readonly plainPort: number
  readonly boardPort: number
}
type Replacements = readonly (readonly [from: string, to: string])[]
type ProxyKind = {
  readonly program: string
  readonly file: string
  readonly changes: (place: ProxySetup) => Replacements
  /** Writes what else is needed; returns the arguments of the program, with the folder as its working directory. */
  readonly prepare: (place: ProxySetup, text: string) => readonly string[]
}

const nginx: ProxyKind = {
  program: 'nginx',
  file: 'nginx.conf',
  changes: ({ folder, port, plainPort, boardPort }) => [
    ['server 127.0.0.1:8787;', `server 127.0.0.1:${boardPort};`],
    ['listen 80;', `listen 127.0.0.1:${plainPort};`],
    ['listen [::]:80;', `listen [::1]:${plainPort};`],
    ['listen 443 ssl http2;', `listen 127.0.0.1:${port} ssl http2;`],
    ['listen [::]:443 ssl http2;', `listen [::1]:${port} ssl http2;`],
    [`/etc/letsencrypt/live/${siteName}/fullchain.pem`, join(folder, 'cert.pem')],
    [`/etc/letsencrypt/live/${siteName}/privkey.pem`, join(folder, 'key.pem')],
  ],
  prepare: ({ folder }, text) => {
    mkdirSync(join(folder, 'temp'))
    writeFileSync(join(folder, 'site.conf'), text)
    const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
      (kind) => `${kind}_temp_path ${join(folder, 'temp', kind)};`,
    )
    const main = [
      'daemon off; worker_processes 1; error_log stderr warn;',
      process.getuid?.() === 0 ? 'user root;' : '',
      `pid ${join(folder, 'nginx.pid')};`,
      'events { worker_connections 512; }',
      `http { access_log off; ${temporary.join(' ')} include ${join(folder, 'site.conf')}; }`,
    ]
    writeFileSync(join(folder, 'nginx.conf'), main.join('\n'))
    return ['-p', folder, '-c', 'nginx.conf']
  },
}

const haproxy: ProxyKind = {
  program: 'haproxy',
  file: 'haproxy.cfg',
  changes: ({ folder, port, plainPort, boardPort }) => [
    ['bind :80\n', `bind 127.0.0.1:${plainPort}\n`],
    ['bind :::80\n', `bind [::1]:${plainPort}\n`],
    [
      `bind :443 ssl crt /etc/haproxy/certs/${siteName}.pem`,
      `bind 127.0.0.1:${port} ssl crt ${join(folder, 'both.pem')}`,
    ],
    [
      `bind :::443 ssl crt /etc/haproxy/certs/${siteName}.pem`,
      `bind [::1]:${port} ssl crt ${join(folder, 'both.pem')}`,
    ],
    ['server board 127.0.0.1:8787', `server board 127.0.0.1:${boardPort}`],
  ],
  prepare: ({ folder }, text) => {
    writeFileSync(join(folder, 'both.pem'), `${localCertificate}\n${localKey}`)
    writeFileSync(join(folder, 'haproxy.cfg'), text)
    return ['-db', '-f', 'haproxy.cfg']
  },
}

const caddy: ProxyKind = {
  program: 'caddy',
  file: 'Caddyfile',
  changes: ({ folder, port, plainPort, boardPort }) => [
    ['http_port 80\n', `http_port ${plainPort}\n\tadmin off\n`],
    ['https_port 443\n', `https_port ${port}\n`],
    ['http://board.example {', 'http://board.example {\n\tbind 127.0.0.1 [::1]'],
    [
      'https://board.example {',
      `https://board.example {\n\tbind 127.0.0.1 [::1]\n\ttls ${join(folder, 'cert.pem')} ${join(folder, 'key.pem')}`,
    ],
    ['reverse_proxy 127.0.0.1:8787', `reverse_proxy 127.0.0.1:${boardPort}`],
  ],
  prepare: ({ folder }, text) => {
    writeFileSync(join(folder, 'Caddyfile'), text)
    return ['run', '--config', 'Caddyfile', '--adapter', 'caddyfile']
  },
}

export const proxies = { nginx, haproxy, caddy } as const
export type ProxyName = keyof typeof proxies

export class ProxyProgram {
  readonly port: number
  readonly httpPort: number
  readonly #folder: string
  readonly #child: ChildProcess

  private constructor({ folder, port, plainPort }: ProxySetup, child: ChildProcess) {
    this.#folder = folder
    this.#child = child
    this.port = port
    this.httpPort = plainPort
  }

  static async start(name: ProxyName, boardPort: number): Promise<ProxyProgram> {
    const { program, file, changes, prepare } = proxies[name]
    const folder = mkdtempSync(join(tmpdir(), `broadside-${name}-`))
    const [port, plainPort] = [await freePort('127.0.0.1'), await freePort('127.0.0.1')]
    const place = { folder, port, plainPort, boardPort }
    writeFileSync(join(folder, 'cert.pem'), localCertificate)
    writeFileSync(join(folder, 'key.pem'), localKey)
    let text = readFileSync(new URL(`../../src/hosting/${file}`, import.meta.url), 'utf8')
    for (const [from, to] of changes(place)) {
      if (text.split(from).length !== 2) throw new Error(`${file} does not say ${JSON.stringify(from)} once`)
      text = text.replace(from, to)
    }
    const child = spawn(findProgram(program, '/usr/sbin')!, prepare(place, text), {
      cwd: folder,
      // Caddy stores files under its home.
      env: { PATH: process.env.PATH, HOME: folder },
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    let stderr = ''
    child.stderr.on('data', (chunk: Buffer) => {
      stderr += chunk.toString()
    })
    const ended = new Promise<never>((_, reject) =>
      child.once('close', (code) => reject(new Error(`${name} ended with ${code}: ${stderr}`))),
    )
    ended.catch(() => {})
    const proxy = new ProxyProgram(place, child)
    await Promise.race([proxy.#waitUntilReady(), ended])
    return proxy
  }

  /** One request, on its own connection. */
  request(path: string, { method = 'GET', headers = {}, body, from }: ProxyRequest = {}): Promise<ProxyResponse> {
    return new Promise((resolve, reject) => {
      const sent = request(
        {
          ...{
            host: from?.includes(':') === true ? '::1' : '127.0.0.1',
            port: this.port,
            servername: siteName,
            rejectUnauthorized: false,
          },
          ...{ method, path, agent: false },
          headers: {
            host: siteName,
            ...headers,
            ...(body === undefined ? {} : { 'content-length': Buffer.byteLength(body) }),
          },
          ...(from === undefined ? {} : { localAddress: from }),
        },
        (response) => {
          const chunks: Buffer[] = []
          response.on('data', (chunk: Buffer) => chunks.push(chunk))
          response.on('error', reject)
          response.on('end', () =>
            resolve({ status: response.statusCode!, headers: response.headers, body: Buffer.concat(chunks) }),
          )
        },
      )
      sent.on('error', reject)
      sent.end(body)
    })
  }

  /** A connection for raw bytes. */
  async raw(): Promise<RawConnection> {
    const socket: TLSSocket = tlsConnect({
      host: '127.0.0.1',
      port: this.port,
      servername: siteName,
      rejectUnauthorized: false,
    })
    await new Promise<void>((resolve, reject) => {
      socket.once('secureConnect', resolve)
      socket.once('error', reject)
    })
    return new RawConnection(socket)
  }

  async stop(): Promise<void> {
    const ended = new Promise((resolve) => this.#child.once('close', resolve))
    this.#child.kill('SIGTERM')
    await ended
    rmSync(this.#folder, { recursive: true, force: true })
  }

  async #waitUntilReady(): Promise<void> {
    for (;;) {
      const answer = await this.request('/healthz').catch(() => undefined)
      if (answer?.status === 200) return
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  }
}
