/** A live list of posts (assets/live.js): its data attributes contain what the script needs. */
import { type Html, html } from './html.ts'

type LiveList = {
  readonly room: string
  /** Only posts of this page of the room are added. */
  readonly page?: string | undefined
  /** Newest post of the room, which may be on another of its pages: the stream begins after it. */
  readonly newest: string | undefined
  /** Newest public change that the list reflects. */
  readonly change: number
  /** Maximum of posts on the page. */
  readonly most: number
}

export function liveList({ room, page, newest, change, most }: LiveList, posts: Html): Html {
  return html`<p class="live" id="live" role="status">Without JavaScript this page shows the posts as of when it was loaded.</p>
<div class="posts" data-live-room="${room}" data-live-change="${change}" data-live-max="${most}"${newest !== undefined && html` data-live-newest="${newest}"`}${page !== undefined && html` data-live-page="${page}"`}>
${posts}
</div>`
}
