/** `/d/{doc}`: a document as Markdown, in any version; `/d/{doc}/history`: what each version changed. */

import { refusal } from '../../actors/kernel/refusals.ts'
import type { ResultOf } from '../pages/data.ts'
import { type Page, Refused, shown } from '../pages/page.ts'
import { changesMax } from '../pages/pieces/diff.ts'
import { type Html, html, pathTo } from '../pages/pieces/html.ts'
import { facts, leftOut, pager } from '../pages/pieces/listing.ts'
import { person } from '../pages/pieces/person.ts'
import { markdownExcerpt } from '../pages/pieces/text.ts'
import { bytes, countOf, when } from '../pages/pieces/time.ts'

type DocText = ResultOf<'docs.read'>['doc']
type DocVersion = ResultOf<'docs.history'>['versions'][number]

/** Parses a version number from the address, or refuses with the right form. */
function versionOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  if (/^[1-9][0-9]{0,5}$/.test(text)) return Number(text)
  throw new Refused(refusal('invalid_field', 'version must be a number from 1', 'version'))
}

export const document: Page = {
  path: '/d/{doc}',
  about: 'A document as Markdown, in any version.',
  query: ['version'],
  async show(ask, { parameters, query }) {
    const target = parameters.doc!
    const version = versionOf(query.get('version'))
    const { doc } = await ask.read('docs.read', {
      target,
      ...(version === undefined ? {} : { version }),
    })
    const isOld = doc.version < doc.versions
    const closed = doc.room !== undefined && (await ask.read('room.get', { room: doc.room })).room.closed
    const asJson = pathTo(`/api/docs/${doc.id}`, { version: doc.version })
    return shown({
      title: doc.title,
      description: markdownExcerpt(doc.text, 200),
      isListed: doc.visibility === 'public',
      section: 'rooms',
      head: html`<p class="crumbs">${doc.room !== undefined && html`<a href="/room/${doc.room}">${doc.room}</a> / `}document</p><h1 dir="auto">${doc.title}</h1>${isOld && html`<p class="note">This is version ${doc.version}. <a href="/d/${doc.id}">The newest is ${doc.versions}.</a></p>`}${closed && html`<p class="note">The room of this document is closed: it is read-only.</p>`}`,
      main: html`<article class="prose" dir="auto">${await ask.mainText({ kind: 'markdown', text: doc.text, whole: asJson })}</article>${!isOld && html`<div id="document-acts" data-document="${doc.id}" data-owner="${doc.owner}"${doc.room !== undefined && html` data-room="${doc.room}"`}${closed && html` data-closed`}></div>`}`,
      scripts: isOld ? [] : ['document.js'],
      aside: html`<section><h2>This document</h2>${facts([
        ['version', html`${doc.version} of <a href="/d/${doc.id}/history">${doc.versions}</a>`],
        ['written by', person(doc.author)],
        ['written', when(doc.written_at)],
        ['size', bytes(doc.size)],
        ['SHA-256', html`<code>${doc.sha256}</code>`],
        doc.merged === undefined
          ? undefined
          : ['merged', `this write was merged with version ${doc.merged.onto_version}`],
        ['made', when(doc.created_at)],
      ])}</section><section><h2>Other forms</h2><ul><li><a href="/d/${doc.id}/history">what each version changed</a></li><li><a href="${asJson}">as JSON, with the signature</a></li></ul></section>`,
    })
  },
}

export const documentHistory: Page = {
  path: '/d/{doc}/history',
  about: 'What each version of a document changed.',
  query: ['version', 'cursor'],
  async show(ask, { path, parameters, query }) {
    const target = parameters.doc!
    const cursor = query.get('cursor')
    const list = await ask.read('docs.history', {
      target,
      limit: 50,
      ...(cursor === undefined ? {} : { cursor }),
    })
    const { doc, versions } = list
    const number = versionOf(query.get('version')) ?? doc.versions
    const textAt = async (version: number): Promise<DocText> => (await ask.read('docs.read', { target, version })).doc
    const newer = await textAt(number)
    const older = number > 1 ? await textAt(number - 1) : undefined
    const { text } = newer
    const whole = pathTo(`/d/${doc.id}`, { version: number })
    const changed: Html =
      older === undefined
        ? html`<p class="quiet">This is the first version.</p>${await ask.mainText({ kind: 'verbatim', text, whole })}`
        : await ask.mainText({ kind: 'diff', before: older.text, text, whole, changesMax })
    return shown({
      title: `History of ${doc.title}`,
      section: 'rooms',
      isListed: false,
      head: html`<p class="crumbs"><a href="/d/${doc.id}"><bdi>${doc.title}</bdi></a></p><h1>${countOf(doc.versions, 'version')}</h1>`,
      main: html`<h2>What version ${number} changed</h2><p class="line">${person(newer.author)}${when(newer.written_at)}<a href="${whole}">read it in full</a></p>${changed}`,
      aside: html`<section><h2>Versions</h2><ol class="rows" reversed>${versions.map((each) => versionLine(doc.id, each, number))}</ol>${leftOut(list)}${pager(path, { cursor }, list)}</section>`,
    })
  },
}

function versionLine(id: string, { version, author, written_at: at, size }: DocVersion, shownNow: number): Html {
  return html`<li><a href="${pathTo(`/d/${id}/history`, { version })}"${version === shownNow && html` aria-current="true"`}><b>Version ${version}</b></a><div class="line">${person(author)}<span>${when(at)}</span><span>${bytes(size)}</span></div></li>`
}
