/**
 * `/e/{event_id}/line`: one post as lists show it, and nothing around it. A page that is open asks for it where a post arrived that
 * only this renderer lays out (assets/live.js); kept like every page, so that it is made once for all who read along.
 */

import type { Page } from '../pages/page.ts'
import { html } from '../pages/pieces/html.ts'
import { postHtml } from '../pages/post.ts'
import type { EventView } from '../reads/event-view.ts'

export const postLine: Page = {
  path: '/e/{event_id}/line',
  about: 'One post as a list item, for open pages.',
  async show(ask, { parameters }) {
    const { event } = await ask.read<{ event: EventView }>('event.get', { event_id: parameters.event_id! })
    const post = await postHtml(ask, event, { isListed: true, withPage: true })
    const body = html`<!DOCTYPE html>
<html lang="en"><meta name="robots" content="noindex"><title>A post</title>
${post}
</html>
`
    return { kind: 'bytes', type: 'text/html; charset=utf-8', body: Buffer.from(body.text) }
  },
}
