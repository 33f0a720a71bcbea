import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { type Board, boardDirectory, expectStartRefused, startBoard } from '../support/board-process.ts'
import { Client, person } from '../support/client.ts'

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 })

const ada = person('ada')
let board: Board
let client: Client

beforeAll(async () => {
  const env = { BOARD_NAME: 'Ada & Co', BOARD_ABOUT: 'Where looms talk <loudly>', BOARD_CONTACT: 'ops@board.example' }
  board = await startBoard({ directory: boardDirectory(), env })
  client = await Client.of(board)
})
afterAll(() => client.close())

test('pages show the name of the board, its purpose, and how to reach its operator', async () => {
  const { text } = await client.get('/')
  expect(text).toContain('<a class="wordmark" href="/">Ada &#38; Co</a>')
  expect(text).toContain('<h1>Where looms talk &#60;loudly&#62;</h1>')
  expect(text).toContain('<title>Ada &#38; Co</title>')
  expect((await client.get('/rooms')).text).toContain('<title>Rooms · Ada &#38; Co</title>')
  expect((await client.get('/contact')).text).toContain('<a href="mailto:ops@board.example"')
  expect((await client.get('/capabilities')).data).toMatchObject({
    board: { name: 'Ada & Co', about: 'Where looms talk <loudly>', contact: 'ops@board.example' },
  })
})

test('a name of two lines, or a contact that is not an address, prevents the start with a clear error', async () => {
  for (const [env, words] of [
    [{ BOARD_NAME: 'two\nlines' }, 'BOARD_NAME must be one line of at most 60 characters'],
    [{ BOARD_CONTACT: 'javascript:alert(1)' }, 'BOARD_CONTACT must be an email address or an https:// address'],
  ] as const)
    expect((await expectStartRefused({ directory: boardDirectory(), env })).output).toContain(words)
})

test('security.txt names the contact, and when to fetch it again', async () => {
  const { status, text, headers } = await client.get('/.well-known/security.txt')
  expect([status, headers['content-type']]).toEqual([200, 'text/plain; charset=utf-8'])
  expect(text).toContain('Contact: mailto:ops@board.example\n')
  const days = (Date.parse(/^Expires: (.+)$/m.exec(text)![1]!) - Date.now()) / 86_400_000
  expect(days).toBeGreaterThan(100)
  expect(days).toBeLessThan(365)
})

test('browsers, crawlers and agents find a search, a sitemap, a card and an icon', async () => {
  const posted = await client.post(ada, { room: 'looms', text: 'A thread of <wool>' })
  const id = posted.data.event_id!
  const search = await client.get('/opensearch.xml')
  expect(search.headers['content-type']).toContain('application/opensearchdescription+xml')
  const templates = [...search.text.matchAll(/template="([^"]*)"/g)].map(([, template]) => template!)
  expect(templates).toHaveLength(2)
  for (const template of templates) {
    const path = template.replace(client.address, '').replace('{searchTerms}', 'wool')
    const found = async () => {
      const { status, text } = await client.get(path)
      return [status, text.includes(id)]
    }
    await expect.poll(found, { message: path, timeout: 20_000 }).toEqual([200, true])
  }
  const map = await client.get('/sitemap.xml')
  expect(map.headers['content-type']).toBe('application/xml; charset=utf-8')
  for (const path of ['/', '/room/looms', `/e/${id}`]) expect(map.text).toContain(`<loc>${client.address}${path}</loc>`)
  expect((await client.get('/robots.txt')).text).toContain(`Sitemap: ${client.address}/sitemap.xml`)
  const card = await client.get('/.well-known/agent-card.json')
  expect(JSON.parse(card.text)).toMatchObject({
    name: 'Ada & Co',
    supportedInterfaces: [{ url: `${client.address}/mcp` }],
  })
  const icon = Buffer.from(await (await fetch(`${client.address}/favicon.ico`)).arrayBuffer())
  expect([icon.readUInt16LE(2), icon.readUInt16LE(4), icon.subarray(23, 26).toString()]).toEqual([1, 1, 'PNG'])
})

test('oEmbed quotes a post as text, names a room, and refuses addresses outside this board', async () => {
  const posted = await client.post(ada, { room: 'looms', text: '<script>alert(1)</script> & wool' })
  const id = posted.data.event_id!
  const asked = async (url: string) => {
    const { status, text } = await client.get(`/oembed?url=${encodeURIComponent(url)}`, { accept: 'application/json' })
    return { status, text }
  }
  const post = await asked(`${client.address}/e/${id}`)
  expect(post.status).toBe(200)
  const found = JSON.parse(post.text)
  expect(found).toMatchObject({ version: '1.0', type: 'rich', provider_name: 'Ada & Co' })
  expect(found.html).not.toContain('<script')
  expect(found.html).toContain('&#38; wool')
  expect(JSON.parse((await asked(`${client.address}/room/looms`)).text)).toMatchObject({ type: 'link', title: 'looms' })
  for (const url of ['', 'https://elsewhere.example/e/x', `${client.address}/faq`])
    expect((await asked(url)).status).toBe(400)
  await client.command(ada, { operation: 'event.redact', event_id: id, reason: 'test' })
  expect((await asked(`${client.address}/e/${id}`)).text).not.toContain('wool')
})
