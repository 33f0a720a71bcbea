/** Which client address counts behind real proxies, as packaged by Debian, each configured as its manual says. */
import { type ChildProcess, spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, describe, expect, test, vi } from 'vitest'
import { findProgram, skipNote, skipWithout } from '../peers/peers.ts'
import { boardDirectory, startBoard } from '../support/board-process.ts'
import { patience } from '../support/patience.ts'
import { rawRequest } from '../support/raw-http.ts'

vi.setConfig({ testTimeout: 900_000 })

const started: ChildProcess[] = []
afterAll(() => {
  for (const child of started) child.kill('SIGKILL')
})

/** Debian puts daemons where a user's PATH does not look. */
const daemon = (name: string) => findProgram(name, '/usr/sbin')
const missing = (name: string) =>
  daemon(name) === undefined ? `${name} is missing; install it as root with: sh test/peers/install.sh` : undefined

async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const { port } = server.address() as { port: number }
  await new Promise<void>((done) => server.close(() => done()))
  return port
}

/** The network that the board counts a request with these header lines in. */
async function countedIn(port: number, lines: readonly string[]): Promise<string | undefined> {
  const body = '{"operation":"quota.get"}'
  const head = ['POST /v1/command HTTP/1.1', 'Host: a', 'Connection: close', `Content-Length: ${body.length}`, ...lines]
  const answer = await rawRequest(port, `${head.join('\r\n')}\r\n\r\n${body}`)
  if (answer?.status !== 200) return undefined
  const { data } = JSON.parse(answer.body.toString()) as { data: { quota: { networks: { network: string }[] } } }
  return data.quota.networks[0]!.network
}

/** Runs a proxy in front of a board and resolves when it answers. */
async function behind(
  name: string,
  trust: Readonly<Record<string, string>>,
  configOf: (place: { readonly board: number; readonly port: number; readonly folder: string }) => string,
): Promise<number> {
  const board = await startBoard({ directory: boardDirectory(), env: trust })
  const folder = boardDirectory()
  const port = await freePort()
  const file = join(folder, 'proxy.conf')
  writeFileSync(file, configOf({ board: Number(new URL(board.address).port), port, folder }))
  const args = name === 'haproxy' ? ['-f', file, '-db'] : ['-c', file, '-p', folder, '-e', 'stderr']
  const child = spawn(daemon(name)!, args, { stdio: 'ignore' })
  started.push(child)
  await vi.waitUntil(async () => {
    if (child.exitCode !== null) throw new Error(`${name} does not run`)
    const answer = await countedIn(port, []).catch(() => undefined)
    if (answer === undefined) await sleep(100)
    return answer !== undefined
  }, patience)
  return port
}

const haproxy =
  (option: string) =>
  ({ board, port }: { board: number; port: number }) =>
    `
defaults
  mode http
  timeout connect 5s
  timeout client 30s
  timeout server 30s
  ${option}
listen board
  bind 127.0.0.1:${port}
  source 127.0.0.3
  server one 127.0.0.1:${board}
`

const nginx =
  (setting: string) =>
  ({ board, port, folder }: { board: number; port: number; folder: string }) =>
    `
daemon off;
pid ${folder}/pid;
events {}
http {
  access_log off;
  client_body_temp_path ${folder}/body;
  proxy_temp_path ${folder}/proxy;
  fastcgi_temp_path ${folder}/fastcgi;
  uwsgi_temp_path ${folder}/uwsgi;
  scgi_temp_path ${folder}/scgi;
  server {
    listen 127.0.0.1:${port};
    location / {
      proxy_pass http://127.0.0.1:${board};
      proxy_http_version 1.1;
      proxy_bind 127.0.0.3;
      ${setting}
    }
  }
}
`

/** Header lines of a client that wants to be somebody else. */
const lies = [
  [],
  ['X-Forwarded-For: 203.0.113.9'],
  ['X-Forwarded-For: 203.0.113.9', 'X-Forwarded-For: 203.0.113.10'],
  ['X-Forwarded-For: ,"', 'Forwarded: for="203.0.113.9', 'X-Real-IP: 203.0.113.9'],
  ['Forwarded: for=203.0.113.9, for=203.0.113.10'],
]

// The board sees 127.0.0.3, and the proxy was called from 127.0.0.1.
const from = { TRUST_PROXY_FROM: '127.0.0.3' }
const forwardedFor = { ...from, TRUST_PROXY: 'X-Forwarded-For' }

describe.each(['uws', 'node'])('in front of the %s engine', (HTTP_ENGINE) => {
  test.skipIf(skipWithout(missing('haproxy')))(
    `HAProxy's option forwardfor, which appends a line${skipNote(missing('haproxy'))}`,
    async () => {
      const port = await behind('haproxy', { HTTP_ENGINE, ...forwardedFor }, haproxy('option forwardfor'))
      for (const lines of lies) expect([lines, await countedIn(port, lines)]).toEqual([lines, '127.0.0.1'])
    },
  )

  test.skipIf(skipWithout(missing('nginx')))(
    `nginx's proxy_add_x_forwarded_for and $remote_addr${skipNote(missing('nginx'))}`,
    async () => {
      const appended = 'proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;'
      const port = await behind('nginx', { HTTP_ENGINE, ...forwardedFor }, nginx(appended))
      for (const lines of lies) expect([lines, await countedIn(port, lines)]).toEqual([lines, '127.0.0.1'])
      const trust = { HTTP_ENGINE, ...from, TRUST_PROXY: 'X-Real-IP' }
      const replaced = await behind('nginx', trust, nginx('proxy_set_header X-Real-IP $remote_addr;'))
      for (const lines of lies) expect([lines, await countedIn(replaced, lines)]).toEqual([lines, '127.0.0.1'])
    },
  )

  test.skipIf(skipWithout(missing('haproxy')))(
    `a proxy that TRUST_PROXY_FROM does not name counts as one client${skipNote(missing('haproxy'))}`,
    async () => {
      const trust = { HTTP_ENGINE, TRUST_PROXY: 'X-Forwarded-For', TRUST_PROXY_FROM: '10.0.0.0/8' }
      const port = await behind('haproxy', trust, haproxy('option forwardfor'))
      for (const lines of lies) expect([lines, await countedIn(port, lines)]).toEqual([lines, '127.0.0.3'])
    },
  )
})
