import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { skipNote, skipWithout } from '../peers/peers.ts'
import { boardDirectory, startBoard } from '../support/board-process.ts'
import { browserProgram, missingBrowser } from '../support/browser.ts'
import { Client, type ProofJson, person } from '../support/client.ts'

vi.setConfig({ testTimeout: 900_000, hookTimeout: 900_000 })

const ada = person('ada')
const hostile = 'A text with <script>alert(1)</script> & "quotes", \u202ebackwards\u202c and 🌍'
let client: Client
let id: string
/** Sits between browser and board; `change` may return another proof. */
let between: Server
let address: string
let change: (proof: ProofJson & { event?: { text: string } }) => void = () => {}

beforeAll(async () => {
  const board = await startBoard({ directory: boardDirectory() })
  client = await Client.of(board)
  for (let n = 0; n < 20; n++) await client.post(ada, { text: `post ${n}` })
  id = (await client.post(ada, { text: hostile })).data.event_id!
  await client.post(ada, { text: 'and one behind it' })
  between = createServer((request, response) => {
    void (async () => {
      const answer = await fetch(`${client.address}${request.url}`)
      let body = Buffer.from(await answer.arrayBuffer())
      if (request.url!.startsWith('/api/')) {
        const json = JSON.parse(body.toString()) as { data: ProofJson }
        change(json.data)
        body = Buffer.from(JSON.stringify(json))
      }
      const passed = ['content-type', 'content-security-policy'].flatMap((name) => {
        const value = answer.headers.get(name)
        return value === null ? [] : [[name, value]]
      })
      response.writeHead(answer.status, Object.fromEntries(passed)).end(body)
    })()
  })
  await new Promise<void>((done) => between.listen(0, '127.0.0.1', done))
  address = `http://127.0.0.1:${(between.address() as AddressInfo).port}`
})
afterAll(() => {
  client.close()
  between.closeAllConnections()
  between.close()
})

test('without any script the page says what is proved, what is not, and how to verify it by hand', async () => {
  const { status, headers, text } = await client.get(`/e/${id}/proof`)
  expect(status).toBe(200)
  expect(headers['content-security-policy']).toContain("default-src 'none'")
  expect(headers['content-security-policy']).not.toContain('unsafe')
  expect(text).toContain('A text with &#60;script&#62;alert(1)')
  expect(text).toContain('<span class="odd">U+202E</span>backwards')
  expect(text).toContain('What this proves and does not prove')
  expect(text).toContain(`href="/api/log/proof?message=${id}&amp;format=tlog-proof"`)
  for (const kind of ['tlog-proof', 'json']) expect(text).toContain(`broadside verify ${id}.${kind} --vkey`)
})

test('for an edited post the proof of the newest version is linked', async () => {
  const first = (await client.post(ada, { text: 'before' })).data.event_id!
  const supersede = { text: 'after', data: JSON.stringify({ schema: 1, supersedes: first }) }
  const version = (await client.post(ada, supersede)).data.event_id!
  const { status, text } = await client.get(`/e/${first}/proof`)
  expect(status).toBe(200)
  expect(text).toContain('the newest of its 2 versions')
  expect(text).toContain(`href="/api/log/proof?message=${version}"`)
})

test('unknown and private posts have the same page', async () => {
  const made = await client.command(ada, { operation: 'room.create', room: 'hidden-room', visibility: 'private' })
  expect(made.status).toBe(200)
  const inside = await client.post(ada, { room: 'hidden-room', text: 'not for all' })
  const [unknown, hidden] = await Promise.all(
    ['0'.repeat(32), inside.data.event_id!].map(async (each) => {
      const { status, text } = await client.get(`/e/${each}/proof`)
      return { status, text: text.replaceAll(each, 'ID') }
    }),
  )
  expect(unknown!.status).toBe(400)
  expect(hidden).toEqual(unknown)
})

describe.skipIf(skipWithout(missingBrowser))(`in a browser${skipNote(missingBrowser)}`, () => {
  let profile: string
  beforeAll(() => {
    profile = mkdtempSync(join(tmpdir(), 'broadside-browser-'))
  })
  // Processes started by the browser may write a moment longer than it.
  afterAll(() => rmSync(profile, { recursive: true, force: true, maxRetries: 20 }))

  /** The page as the browser has it when its scripts are done. */
  async function dom(event = id): Promise<string> {
    const flags = [
      '--headless',
      '--no-sandbox',
      '--disable-gpu',
      '--virtual-time-budget=10000',
      `--user-data-dir=${profile}`,
    ]
    const { stdout } = await promisify(execFile)(
      browserProgram,
      [...flags, '--dump-dom', `${address}/e/${event}/proof`],
      {
        maxBuffer: 1e7,
      },
    )
    return stdout
  }
  const verdictOf = (html: string) => /id="verdict"[^>]*>([^<]*)</.exec(html)?.[1]
  const brokenIn = (html: string) => [...html.matchAll(/id="step-([a-z]+)" class="bad"/g)].map(([, step]) => step)

  test('every step is verified, the path is drawn, and the key is remembered', async () => {
    const first = await dom()
    expect(verdictOf(first)).toBe('Proved: your browser checked every step.')
    expect(first.match(/class="good"/g)!.length).toBe(6)
    expect(first.match(/class="node ours"/g)!.length).toBeGreaterThan(3)
    expect(first).toContain('seen for the first time in this browser')
    expect(await dom()).toContain('the key this browser remembers')
  })

  test('for an edited post the newest version is proved, also on the version’s own page', async () => {
    const first = (await client.post(ada, { text: 'before' })).data.event_id!
    const supersede = { text: 'after', data: JSON.stringify({ schema: 1, supersedes: first }) }
    const version = (await client.post(ada, supersede)).data.event_id!
    for (const event of [first, version]) {
      const html = await dom(event)
      expect(verdictOf(html)).toBe('Proved: your browser checked every step.')
      expect(html).toContain('<p class="text" dir="auto">after</p>')
      expect(html).toContain(`/api/log/proof?message=${version}"`)
    }
    // Without the text there is nothing that was signed: the rest is proved, and no more is claimed.
    await client.command(ada, { operation: 'event.redact', event_id: first, reason: 'test' })
    const gone = await dom(first)
    expect(verdictOf(gone)).toBe(
      'Proved: a post with this id is in the log. The signature of its author cannot be checked: the text is gone.',
    )
    expect(gone).toMatch(/id="step-signature" class="none"/)
    expect(gone.match(/<li id="step-[a-z]+" class="good"/g)).toHaveLength(4)
  })

  test.each<[string, string[], typeof change]>([
    [
      'the signed bytes',
      ['signature', 'entry'],
      (proof) => {
        if (proof.signed_payload !== undefined)
          (proof as { signed_payload: string }).signed_payload = proof.signed_payload.replace('quotes', 'quotas')
      },
    ],
    [
      'the text alone',
      ['signature'],
      (proof) => {
        if (proof.event !== undefined) proof.event.text = 'other words'
      },
    ],
    [
      'the entry',
      ['entry', 'leaf', 'path', 'checkpoint'],
      (proof) => {
        if (proof.entry !== undefined)
          (proof as { entry: string }).entry = Buffer.from(
            Buffer.from(proof.entry, 'base64')
              .toString()
              .replace('lobby', 'lobbi')
              .replace(/event (\w)/, (_, digit) => `event ${digit === '0' ? '1' : '0'}`),
          ).toString('base64')
      },
    ],
    [
      'a hash of the path',
      ['path', 'checkpoint'],
      (proof) => {
        if (proof.inclusion_path !== undefined)
          (proof as unknown as { inclusion_path: string[] }).inclusion_path[1] = '00'.repeat(32)
      },
    ],
    [
      'the root and the checkpoint’s text',
      ['checkpoint'],
      (proof) => {
        if (proof.checkpoint !== undefined)
          (proof as { checkpoint: string }).checkpoint = proof.checkpoint.replace(/\n\n— (\S+) (.{20})/, '\n\n— $1 $2A')
      },
    ],
  ])('%s, when tampered with, shows as broken', async (_, broken, tamper) => {
    change = tamper
    const html = await dom()
    change = () => {}
    expect(verdictOf(html)).toBe('NOT proved: a step below is broken.')
    expect(brokenIn(html)).toEqual(broken)
  })
})
