/**
 * HEALTH_PORT answers checks by proxies that speak HTTP/1.0, on both engines, from the first moment of a start to the end of a stop. With
 * METRICS_PORT the metrics are served there and on no other port.
 */
import { spawn } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test, vi } from 'vitest'
import { withOwnPorts } from '../../src/http/own-ports.ts'
import { freePort } from '../../src/listening.ts'
import { missingProgram, skipNote, skipWithout } from '../peers/peers.ts'
import { type Board, boardDirectory, expectStartRefused, startBoard } from '../support/board-process.ts'
import { Client, person } from '../support/client.ts'
import { patience } from '../support/patience.ts'
import { runProgram } from '../support/run-program.ts'
import { scratchDirectory } from '../support/scratch.ts'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 })

/** Everything received before the connection ends; '' when nobody listens. */
function told(port: number, request: string): Promise<string> {
  return new Promise((resolve) => {
    let answer = ''
    const socket = connect(port, '127.0.0.1', () => socket.write(request))
    socket.on('data', (chunk: Buffer) => {
      answer += chunk.toString()
    })
    socket.on('error', () => {})
    socket.on('close', () => resolve(answer))
  })
}

const portOf = ({ lines }: Board, event = 'health'): number => {
  const line = lines.find((each) => each.includes(`"event":"${event}"`))
  return (JSON.parse(line!) as { port: number }).port
}

describe.each(['uws', 'node'])('on %s', (engine) => {
  test('checks of every kind are answered immediately, and the connection is closed', async () => {
    const board = await startBoard({ directory: boardDirectory(), env: { HTTP_ENGINE: engine, HEALTH_PORT: '0' } })
    const port = portOf(board)
    // HAProxy without and with a path; nginx before 1.29.7; a check with a Host header, and one that would keep the connection open.
    for (const request of [
      'OPTIONS / HTTP/1.0\r\n\r\n',
      'GET /healthz HTTP/1.0\r\n\r\n',
      'GET /healthz HTTP/1.0\r\nHost: board\r\nConnection: close\r\n\r\n',
      'GET /healthz?x=1 HTTP/1.1\r\nHost: board\r\nConnection: keep-alive\r\n\r\n',
    ]) {
      const answer = await told(port, request)
      expect(answer).toMatch(/^HTTP\/1\.1 200 OK\r\n/)
      expect(answer).toMatch(/\r\n\r\nok\n$/)
    }
    expect(await told(port, 'HEAD /healthz HTTP/1.0\r\n\r\n')).toMatch(/^HTTP\/1\.1 200 OK\r\n[\s\S]*\r\n\r\n$/)
    expect(await told(port, 'GET /api/stats HTTP/1.0\r\n\r\n')).toMatch(/^HTTP\/1\.1 404 /)
    expect(await told(port, 'POST /healthz HTTP/1.0\r\n\r\n')).toMatch(/^HTTP\/1\.1 405 /)
    expect(await told(port, 'garbage\r\n\r\n')).toMatch(/^HTTP\/1\.1 400 /)
    expect((await board.stop()).code).toBe(0)
    expect(await told(port, 'GET /healthz HTTP/1.0\r\n\r\n')).toBe('')
  })
})

test('it answers before the board is ready and until the board is gone, and reports that', async () => {
  const healthPort = await freePort('127.0.0.1')
  const check = async () =>
    (await told(healthPort, 'GET /healthz HTTP/1.0\r\n\r\n')).replace(/\r\n[\s\S]*\r\n\r\n/, ' ')
  const [begun, ended] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const ports = { host: '127.0.0.1', port: 0, healthPort, metricsPort: undefined }
  const starting = withOwnPorts(ports, async () => {
    await begun.promise
    return { metrics: async () => undefined, close: () => ended.promise }
  })
  await vi.waitFor(async () => expect(await check()).toBe('HTTP/1.1 503 Service Unavailable starting\n'), patience)
  begun.resolve()
  const running = await starting
  expect(await check()).toBe('HTTP/1.1 200 OK ok\n')
  const stopping = running.close()
  expect(await check()).toBe('HTTP/1.1 503 Service Unavailable stopping\n')
  ended.resolve()
  await stopping
  expect(await check()).toBe('')
  const failed = withOwnPorts(ports, () => Promise.reject(new Error('no disk')))
  await expect(failed).rejects.toThrow('no disk')
  expect(await check()).toBe('')
})

test('a port that is taken, or the board’s own, prevents the start by name', async () => {
  const board = await startBoard({ directory: boardDirectory() })
  const taken = await expectStartRefused({ directory: boardDirectory(), env: { HEALTH_PORT: String(board.port) } })
  expect([taken.code, taken.output]).toEqual([
    1,
    expect.stringMatching(/HEALTH_PORT must be a port that is free on 127\.0\.0\.1/),
  ])
  const free = await freePort('127.0.0.1')
  const own = await expectStartRefused({ directory: boardDirectory(), port: free, env: { HEALTH_PORT: String(free) } })
  expect([own.code, own.output]).toEqual([1, expect.stringContaining('HEALTH_PORT must be a different port than PORT')])
  await board.stop()
})

describe.each(['uws', 'node'])('metrics on %s', (engine) => {
  test('they are served only on their own port if one is set', async () => {
    const board = await startBoard({ directory: boardDirectory(), env: { HTTP_ENGINE: engine, METRICS_PORT: '0' } })
    const client = await Client.of(board)
    await client.post(person('who is counted'), { text: 'counted' })
    const answer = await told(portOf(board, 'metrics'), 'GET /metrics HTTP/1.0\r\n\r\n')
    expect(answer).toMatch(/^HTTP\/1\.1 200 OK\r\n/)
    expect(answer).toMatch(/^broadside_command_duration_seconds_count\{operation="post"\} 1$/m)
    expect(answer).toMatch(/^broadside_command_duration_seconds_bucket\{operation="post",le="\+Inf"\} 1$/m)
    expect(answer).toMatch(/^broadside_thread_active_seconds_total\{thread="front"\} \d+\.\d+$/m)
    expect(answer).toMatch(/^broadside_build_info\{version="\d+\.\d+\.\d+",node="\d+\.\d+\.\d+"\} 1$/m)
    expect(Number(/^broadside_disk_free_bytes (\d+)$/m.exec(answer)![1])).toBeGreaterThan(0)
    expect(await told(portOf(board, 'metrics'), 'GET /healthz HTTP/1.0\r\n\r\n')).toMatch(/^HTTP\/1\.1 404 /)
    expect((await client.get('/metrics')).status).toBe(404)
    client.close()
    expect((await board.stop()).code).toBe(0)
  })

  test.each(['', 'X-Client'])('requests that a proxy forwards get none, with TRUST_PROXY=%s', async (trusted) => {
    const env = { HTTP_ENGINE: engine, TRUST_PROXY: trusted }
    const board = await startBoard({ directory: boardDirectory(), env })
    const ask = async (headers: Readonly<Record<string, string>>) =>
      (await fetch(`${board.address}/metrics`, { headers })).status
    expect(await ask({})).toBe(200)
    expect(await ask({ 'x-client': '192.0.2.1' })).toBe(trusted === '' ? 200 : 404)
    for (const name of ['x-forwarded-for', 'x-real-ip', 'forwarded'])
      expect([name, await ask({ [name]: 'x' })]).toEqual([name, 404])
    await board.stop()
  })
})

const missing = missingProgram('promtool')
test.skipIf(skipWithout(missing))(
  `promtool finds nothing wrong with the metrics and the alerts${skipNote(missing)}`,
  async () => {
    const board = await startBoard({ directory: boardDirectory() })
    const client = await Client.of(board)
    await client.post(person('who is counted'), { text: 'counted' })
    const { text } = await client.get('/metrics')
    const folder = fileURLToPath(new URL('../../src/hosting', import.meta.url))
    const checks = [
      await runProgram(folder, 'promtool', ['check', 'metrics'], { input: text }),
      await runProgram(folder, 'promtool', ['check', 'rules', 'alerts.yml']),
    ]
    expect(checks.map(({ code, errors }) => [code, errors])).toEqual([
      [0, ''],
      [0, ''],
    ])
    // Every metric that an alert uses exists.
    const asked = new Set(readFileSync(join(folder, 'alerts.yml'), 'utf8').match(/\bbroadside_[a-z_]+/g))
    expect([...asked].filter((name) => !text.includes(`# TYPE ${name.replace(/_bucket$/, '')} `))).toEqual([])
    client.close()
    await board.stop()
  },
)

const noPrometheus = missingProgram('prometheus')
test.skipIf(skipWithout(noPrometheus))(
  `Prometheus answers every query of the dashboard from a real board${skipNote(noPrometheus)}`,
  async () => {
    const folder = scratchDirectory()
    const board = await startBoard({ directory: boardDirectory() })
    const client = await Client.of(board)
    await client.post(person('who is charted'), { text: 'charted' })
    const port = await freePort('127.0.0.1')
    const config = { scrape_interval: '1s', static_configs: [{ targets: [`127.0.0.1:${board.port}`] }] }
    writeFileSync(join(folder, 'p.yml'), JSON.stringify({ scrape_configs: [{ job_name: 'broadside', ...config }] }))
    const flags = ['--config.file=p.yml', `--storage.tsdb.path=${folder}`, `--web.listen-address=127.0.0.1:${port}`]
    const prometheus = spawn('prometheus', flags, { cwd: folder, stdio: 'ignore' })
    const ended = new Promise((done) => prometheus.once('close', done))
    try {
      const query = async (expr: string): Promise<{ status: string; found: number }> => {
        const address = `http://127.0.0.1:${port}/api/v1/query?query=${encodeURIComponent(expr)}`
        const { status, data } = (await (await fetch(address)).json()) as {
          status: string
          data?: { result: unknown[] }
        }
        return { status, found: data?.result.length ?? 0 }
      }
      const rated = 'rate(broadside_processor_seconds_total[5m])'
      await vi.waitFor(async () => expect((await query(rated)).found).toBe(1), { ...patience, interval: 500 })
      const { text } = await client.get('/metrics')
      const file = readFileSync(new URL('../../src/hosting/dashboard.json', import.meta.url), 'utf8')
      const { panels } = JSON.parse(file) as { panels: { title: string; targets: { expr: string }[] }[] }
      expect(panels.length).toBeGreaterThan(15)
      for (const { title, targets } of panels)
        for (const { expr } of targets) {
          const names = expr.match(/\bbroadside_[a-z_]+/g) ?? []
          const unknown = names.filter((name) => !text.includes(`# TYPE ${name.replace(/_(bucket|count)$/, '')} `))
          // Nothing was refused and nobody was disconnected: those metrics have no sample yet.
          const isEmpty = names.some((name) => !new RegExp(`^${name}[ {]`, 'm').test(text))
          const answer = await query(expr)
          expect.soft([title, expr, unknown, answer.status]).toEqual([title, expr, [], 'success'])
          expect.soft([title, expr, isEmpty || answer.found > 0]).toEqual([title, expr, true])
        }
    } finally {
      prometheus.kill('SIGTERM')
      await ended
      client.close()
      await board.stop()
    }
  },
)
