/**
 * Mail as mbox (RFC 4155): messages of RFC 5322 with MIME. Threads follow In-Reply-To and References.
 *
 * A message begins with a line `From ` that has a time, after an empty line. A `>` before `From ` inside a text was added by the program
 * that wrote the file. Identities are mail addresses, which are not shown: a post names the author as the mail did, or by the part before
 * the @.
 */
import { hash } from 'node:crypto'
import PostalMime, { type Email } from 'postal-mime'
import { timeOf } from './corpus.ts'
import type { LineSource } from './lines.ts'
import {
  type MessageSource,
  messageOf,
  type Place,
  type SourceEntry,
  skipped,
  textOfHtml,
  tooMuchMarkup,
  unreadable,
} from './message-source.ts'

/** Attachments are included, as text. */
const mailBytesMax = 32 * 1024 * 1024
const mailLinesMax = 500_000
const ancestorsMax = 50
const mimeDepthMax = 32
const headerBytesMax = 256 * 1024

export function mboxSource(file: LineSource, room: string, system = 'mbox'): MessageSource {
  return {
    async *entries() {
      let number = 0
      for await (const mail of mailsIn(file)) {
        number += 1
        const where = `message ${number} (line ${mail.firstLine})`
        if (mail.isTooLong) yield unreadable(where, `longer than ${mailBytesMax} bytes, or with an over-long line`)
        else yield await entryOf(mail.bytes, where, { room, system })
      }
    },
    share: file.share,
    isRepeatable: file.fileBytes > 0,
    entriesName: 'mails',
  }
}

type Mail = { readonly firstLine: number; readonly bytes: Buffer; readonly isTooLong: boolean }

const lineEnd = Buffer.from('\n')

async function* mailsIn(file: LineSource): AsyncGenerator<Mail> {
  let pieces: Buffer[] = []
  let size = 0
  let isTooLong = false
  let firstLine = 0
  let wasEmpty = true
  for await (const { number, bytes, isCut } of file.lines()) {
    const isStart = wasEmpty && isSeparator(bytes)
    wasEmpty = bytes.length === 0
    if (isStart) {
      if (firstLine > 0) yield { firstLine, bytes: Buffer.concat(pieces), isTooLong }
      pieces = []
      size = 0
      isTooLong = false
      firstLine = number
      continue
    }
    size += bytes.length + 1
    isTooLong ||= isCut || size > mailBytesMax || pieces.length > 2 * mailLinesMax
    if (isTooLong) pieces = []
    // A copy, because the next line overwrites these bytes.
    else pieces.push(Buffer.from(unquoted(bytes)), lineEnd)
  }
  if (firstLine > 0) yield { firstLine, bytes: Buffer.concat(pieces), isTooLong }
}

/** `From ines@harbour.example Sat Mar  2 09:15:00 2019`. A sentence that begins with From has no time of day and year. */
function isSeparator(bytes: Buffer): boolean {
  if (bytes[0] !== 0x46) return false
  return /^From .*\d:\d\d.*\d{4}/.test(bytes.subarray(0, separatorBytes).toString('latin1'))
}

const separatorBytes = 512

/** Removes one mark from `>From ` and `>>From `. */
function unquoted(bytes: Buffer): Buffer {
  return bytes[0] === 0x3e && /^>+From /.test(bytes.subarray(0, 64).toString('latin1')) ? bytes.subarray(1) : bytes
}

async function entryOf(bytes: Buffer, where: string, { room, system }: Place): Promise<SourceEntry> {
  let mail: Email
  try {
    mail = await PostalMime.parse(bytes, {
      forceRfc822Attachments: true,
      maxNestingDepth: mimeDepthMax,
      maxHeadersSize: headerBytesMax,
    })
  } catch (error) {
    return unreadable(where, error instanceof Error ? error.message : 'its MIME cannot be read')
  }
  const author = authorOf(mail)
  if (author === undefined) return unreadable(where, 'it has no author (From)')
  const text = mail.text?.trim() ? mail.text : await textOfHtml(mail.html ?? '')
  if (text === undefined) return unreadable(where, tooMuchMarkup)
  const files = mail.attachments.length
  if (text.trim() === '') {
    return files > 0
      ? skipped(where, 'mails without a text part were skipped')
      : unreadable(where, 'it has no text part')
  }
  const line = messageOf({
    system,
    id: idsIn(mail.messageId)[0] ?? `sha256:${hash('sha256', bytes)}`,
    room,
    author: author.address,
    authorName: author.name,
    parents: parentsOf(mail),
    at: timeOf(mail.date),
    title: mail.subject,
    text,
  })
  return files === 0 ? { where, line } : { where, line, notes: [[files, 'attachments of mails were not imported']] }
}

type Author = { readonly address: string; readonly name: string }

function authorOf({ from, headers }: Email): Author | undefined {
  const address = from?.address?.toLowerCase() ?? ''
  if (from !== undefined && address.includes('@')) {
    return { address, name: from.name === '' ? address.replace(/@.*$/s, '') : from.name }
  }
  // Mailing list archives write `ines at harbour.example (Ines Marlow)`.
  const given = headers.find(({ key }) => key === 'from')?.value.trim() ?? ''
  const [, local = given, host, name = local] = /^(\S+) at (\S+)(?: \((.*)\))?$/.exec(given.slice(0, 1_000)) ?? []
  if (given === '') return undefined
  return { address: (host === undefined ? local : `${local}@${host}`).toLowerCase(), name }
}

/** What it answers, followed by that message's ancestors, as far as the mail names them. */
function parentsOf({ inReplyTo, references }: Email): readonly string[] {
  const above = idsIn(references).reverse()
  return [...new Set([...idsIn(inReplyTo).slice(0, 1), ...above])].slice(0, ancestorsMax)
}

function idsIn(header = ''): string[] {
  return Array.from(header.slice(0, headerBytesMax).matchAll(/<([^<>\s]{1,998})>/g), ([, id = '']) => id)
}
