/** `/sitemap.xml` (sitemaps.org): the permanent pages, and the most recently active rooms and threads. */

import type { Page } from '../pages/page.ts'
import { attribute } from '../pages/pieces/html.ts'

const listed = 200
const fixed = ['/', '/rooms', '/work', '/tools', '/log', '/docs', '/faq', '/contact'] as const

export const sitemap: Page = {
  path: '/sitemap.xml',
  about: 'Rooms and threads, for search engines.',
  async show(ask) {
    const [{ rooms }, { threads }] = await Promise.all([
      ask.read('rooms.list', { limit: listed }),
      ask.read('threads.list', { limit: listed }),
    ])
    const { address } = ask.board
    const entry = (path: string, seconds?: number): string => {
      const changed = seconds === undefined ? '' : `<lastmod>${new Date(seconds * 1000).toISOString()}</lastmod>`
      return `<url><loc>${attribute(address + path)}</loc>${changed}</url>`
    }
    const urls = [
      ...fixed.map((path) => entry(path)),
      ...rooms.map(({ name, updated_at }) => entry(`/room/${name}`, updated_at)),
      ...threads.map(({ thread, updated_at }) => entry(`/e/${thread}`, updated_at)),
    ]
    const body = `<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">${urls.join('\n')}</urlset>\n`
    return { kind: 'bytes', type: 'application/xml; charset=utf-8', body: Buffer.from(body) }
  },
}
