/** A real nginx in front of a board, with the very file of src/hosting: only names, ports and certificates are put in. */
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

const site = new URL('../../src/hosting/nginx.conf', import.meta.url)
/** The name of the board in that file. */
export const siteName = 'board.example'

export type Asked = {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Buffer
  /** An address of this machine to ask from. */
  readonly from?: string
}
export type Got = { readonly status: number; readonly headers: IncomingHttpHeaders; readonly body: Buffer }

export class Nginx {
  readonly port: number
  readonly plainPort: number
  readonly #folder: string
  readonly #child: ChildProcess

  private constructor(
    folder: string,
    child: ChildProcess,
    ports: { readonly port: number; readonly plainPort: number },
  ) {
    this.#folder = folder
    this.#child = child
    this.port = ports.port
    this.plainPort = ports.plainPort
  }

  static async start(boardPort: number): Promise<Nginx> {
    const folder = mkdtempSync(join(tmpdir(), 'broadside-nginx-'))
    const [port, plainPort] = [await freePort('127.0.0.1'), await freePort('127.0.0.1')]
    writeFileSync(join(folder, 'cert.pem'), localCertificate)
    writeFileSync(join(folder, 'key.pem'), localKey)
    mkdirSync(join(folder, 'temp'))
    const changes: readonly (readonly [from: string, to: string])[] = [
      ['server 127.0.0.1:8787;', `server 127.0.0.1:${boardPort};`],
      ['listen 80;', `listen 127.0.0.1:${plainPort};`],
      ['listen [::]:80;', ''],
      ['listen 443 ssl http2;', `listen 127.0.0.1:${port} ssl http2;`],
      ['listen [::]:443 ssl http2;', ''],
      [`/etc/letsencrypt/live/${siteName}/fullchain.pem`, join(folder, 'cert.pem')],
      [`/etc/letsencrypt/live/${siteName}/privkey.pem`, join(folder, 'key.pem')],
    ]
    let text = readFileSync(site, 'utf8')
    for (const [from, to] of changes) {
      if (text.split(from).length !== 2) throw new Error(`${site.pathname} does not say ${JSON.stringify(from)} once`)
      text = text.replace(from, to)
    }
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
    const program = findProgram('nginx', '/usr/sbin')!
    const child = spawn(program, ['-p', folder, '-c', 'nginx.conf'], { stdio: ['ignore', 'ignore', 'pipe'] })
    let words = ''
    child.stderr!.on('data', (chunk: Buffer) => {
      words += chunk.toString()
    })
    const ended = new Promise<never>((_, reject) =>
      child.once('close', (code) => reject(new Error(`nginx ended with ${code}: ${words}`))),
    )
    ended.catch(() => {})
    const nginx = new Nginx(folder, child, { port, plainPort })
    await Promise.race([nginx.#answers(), ended])
    return nginx
  }

  /** One request, on a connection of its own. */
  ask(path: string, { method = 'GET', headers = {}, body, from }: Asked = {}): Promise<Got> {
    return new Promise((resolve, reject) => {
      const sent = request(
        {
          ...{ host: '127.0.0.1', port: this.port, servername: siteName, rejectUnauthorized: false },
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

  /** A connection for bytes as they are. */
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

  async #answers(): Promise<void> {
    for (;;) {
      const answer = await this.ask('/healthz').catch(() => undefined)
      if (answer?.status === 200) return
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  }
}
