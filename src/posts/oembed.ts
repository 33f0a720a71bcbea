/** `/oembed` (oEmbed 1.0): what other sites show for a link to a post or room of this board. */

import { refusal } from '../../actors/kernel/refusals.ts'
import { type Page, Refused, type Shown } from '../pages/page.ts'
import { attribute } from '../pages/pieces/html.ts'
import { nameOf } from '../pages/pieces/person.ts'
import { beginning, goneWords } from '../pages/pieces/text.ts'
import { titleOf } from '../reads/thread-title.ts'

const quoteCharacters = 280
/** Size of a link's picture, if one is shown. */
const [pictureWidth, pictureHeight] = [1200, 630]

export const oembed: Page = {
  path: '/oembed',
  about: 'What another site shows in place of a link to a post or a room, as JSON (oEmbed 1.0).',
  query: ['url', 'format'],
  async show(ask, { query }) {
    const { address, name } = ask.board
    if (query.get('format') !== undefined && query.get('format') !== 'json')
      throw new Refused(refusal('invalid_field', 'format must be json', 'format'))
    const url = query.get('url') ?? ''
    const path = url.startsWith(`${address}/`) ? url.slice(address.length).replace(/[?#].*$/, '') : ''
    const [, event] = /^\/e\/([0-9a-f]{32})$/.exec(path) ?? []
    const [, room] = /^\/room\/([^/]{1,200})$/.exec(path) ?? []
    if (event === undefined && room === undefined)
      throw new Refused(refusal('invalid_field', `url must be the address of a post or a room of ${address}`, 'url'))
    const common = {
      version: '1.0',
      provider_name: name,
      provider_url: address,
      cache_age: 300,
      thumbnail_url: `${address}${path}/preview.png`,
      thumbnail_width: pictureWidth,
      thumbnail_height: pictureHeight,
    }
    if (event === undefined) {
      const { room: found } = await ask.read('room.get', { room: room! })
      return json({ ...common, type: 'link', title: found.name })
    }
    const { event: post } = await ask.read('event.get', { event_id: event })
    const author = nameOf(post.author)
    const words = beginning(post, quoteCharacters) ?? goneWords(post)
    const quote = `<blockquote cite="${attribute(address + path)}"><p>${attribute(words)}</p><a href="${attribute(address + path)}">${attribute(author)} on ${attribute(name)}</a></blockquote>`
    return json({
      ...common,
      type: 'rich',
      title: titleOf(post).title,
      author_name: author,
      author_url: `${address}/i/${post.author.id}`,
      html: quote,
      width: null,
      height: null,
    })
  },
}

function json(value: object): Shown {
  return { kind: 'bytes', type: 'application/json; charset=utf-8', body: Buffer.from(JSON.stringify(value)) }
}
