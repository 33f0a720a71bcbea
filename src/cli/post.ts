/** `broadside post`: signs a message and posts it. */
import { isBlank } from '../format/printable.ts'
import { isHex64 } from '../format/signing.ts'
import { BadAnswer, BoardClient } from './client.ts'
import { type Arguments, type Command, CommandFailed, exitCodes, print, UsageError } from './command-line.ts'
import { textBytesMax } from './corpus.ts'
import { openKeyFile } from './key-file.ts'
import { capabilitiesToSign } from './known-boards.ts'
import { eventIdOption, keyFileOf, keyOptionHelp, roomOf, urlOf, urlOption, urlOptionHelp } from './shared-options.ts'
import { type CommandFields, signCommand } from './sign.ts'
import { inertLine, wordOf } from './terminal.ts'

export const postCommand: Command = {
  name: 'post',
  summary: 'Signs a message with your key and posts it. Without TEXT (or with -) the text comes from standard input.',
  usage: 'post ROOM [TEXT] [options]',
  optionHelp: [
    urlOptionHelp,
    keyOptionHelp,
    ['--reply-to ID', 'the event to reply to'],
    ['--page NAME', 'the topic inside the room (default main; for a reply, the page of the event it replies to)'],
    ['--kind SLUG', 'note (default), request, result, …'],
    ['--to WHO', 'the addressee: @handle or identity id; the id is what is signed'],
    ['--handle NAME', 'claim this handle with the post'],
    ['--ttl SECONDS', 'the text expires after that'],
  ],
  example: 'broadside post lobby "Hello, board" --key broadside-key.json',
  options: {
    ...urlOption,
    key: { type: 'string' },
    'reply-to': { type: 'string' },
    page: { type: 'string' },
    kind: { type: 'string' },
    to: { type: 'string' },
    handle: { type: 'string' },
    ttl: { type: 'string' },
  },
  positionals: { min: 1, max: 2 },
  async run(args, terminal) {
    const fields = fieldsOf(args)
    const { signer } = await openKeyFile(keyFileOf(args))
    const given = args.positionals[1]
    const text = given === undefined || given === '-' ? await readStandardInput() : given
    checkText(text)
    const client = new BoardClient({ url: urlOf(args) })
    try {
      const { serviceId } = await capabilitiesToSign(client, terminal)
      const nowSeconds = terminal.clock.wallSeconds()
      const addressed = args.text('to')
      const to = addressed === undefined ? {} : { to: await identityOf(client, addressed) }
      const signed = signCommand({ ...fields, ...to, text }, { signer, serviceId, nowSeconds })
      const answer = await client.command(signed.body)
      if (answer.event_id !== signed.eventId)
        throw new BadAnswer(client.url, 'the event id is not the one that was signed')
      print(terminal, answer, answerText(answer))
      return exitCodes.ok
    } finally {
      client.close()
    }
  },
}

/**
 * The id of an identity given by its id or handle. Resolved before signing, because signed bytes with a handle would not say whom their
 * author meant.
 */
async function identityOf(client: BoardClient, named: string): Promise<string> {
  if (isHex64(named)) return named
  const handle = named.replace(/^@/, '')
  if (!handlePattern.test(handle)) throw new UsageError(`--to takes @handle or an identity id, not "${named}".`)
  const { identity } = await client.read(`/api/identities/@${handle}`)
  const { id, handle: actual } = Object(identity) as { readonly id?: unknown; readonly handle?: unknown }
  if (typeof id !== 'string' || !isHex64(id) || actual !== handle)
    throw new BadAnswer(client.url, `it did not return the identity of @${handle}`)
  return id
}

const handlePattern = /^[a-z0-9][a-z0-9_-]{1,31}$/

function fieldsOf(args: Arguments): CommandFields {
  const fields: Record<string, string | number> = { room: roomOf(args.positionals[0]!) }
  const replyTo = eventIdOption(args, 'reply-to')
  if (replyTo !== undefined) fields.reply_to = replyTo
  for (const name of ['page', 'kind', 'handle'] as const) {
    const value = args.text(name)
    if (value !== undefined) fields[name] = value
  }
  const ttl = args.integer('ttl', { fallback: 0, min: 1, max: 10 * 366 * 86_400 })
  if (ttl > 0) fields.ttl = ttl
  return { operation: 'post', ...fields }
}

function checkText(text: string): void {
  const bytes = Buffer.byteLength(text)
  if (bytes === 0) throw new CommandFailed('There is no text to post. Give it after the room, or on standard input.')
  if (isBlank(text))
    throw new CommandFailed('The text contains only white space or invisible characters. Write something.')
  if (bytes > textBytesMax)
    throw new CommandFailed(`The text has ${bytes} bytes; a post can have ${textBytesMax}. Shorten or split it.`)
  if (text.includes('\0') || !text.isWellFormed())
    throw new CommandFailed('The text contains a NUL or invalid Unicode. Remove it.')
}

async function readStandardInput(): Promise<string> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of process.stdin as AsyncIterable<Buffer>) {
    chunks.push(chunk)
    size += chunk.length
    // One byte more than a post may have is enough to refuse it.
    if (size > textBytesMax + 1) break
  }
  // The line feed at the end of a piped text was added by the shell, not by the author.
  return Buffer.concat(chunks).toString('utf8').replace(/\n$/, '')
}

function answerText(answer: Record<string, unknown>): string {
  const receipt = Object(answer.receipt) as { log_index?: unknown; tree_size?: unknown }
  const lines = [`event    ${inertLine(wordOf(answer.event_id))}`]
  if (receipt.log_index !== undefined) {
    lines.push(
      inertLine(
        `in log   leaf ${wordOf(receipt.log_index)}, under the signed head of ${wordOf(receipt.tree_size)} leaves`,
      ),
    )
  }
  if (answer.handle_not_applied !== undefined) {
    lines.push(`handle   not given: ${inertLine(wordOf(answer.handle_not_applied))}`)
  }
  return `${lines.join('\n')}\n`
}
