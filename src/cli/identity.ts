/**
 * `broadside identity`: commands about an identity as a whole. Its owner moves it to another key with their own signature. A host gives the
 * owner a copy of what the board stores about them, and erases what can be erased, by an operator's signed commands.
 */
import { copyFileSync, existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { readFacts } from '../board-directory.ts'
import { pause, systemClock } from '../clock.ts'
import { recordOf, textOf } from '../export-check/signed-line.ts'
import { signingBytes } from '../format/signing.ts'
import { machine } from '../platform.ts'
import { release } from '../release.ts'
import { boardSettings, settingsHelp, settingsOptions } from './board-settings.ts'
import { BoardClient, Refused } from './client.ts'
import {
  type Arguments,
  type Command,
  CommandFailed,
  commandError,
  type ExitCode,
  exitCodes,
  print,
  type Terminal,
  UsageError,
} from './command-line.ts'
import { type ErasableContent, erasableContentOf, fileOf, recordsOf, shownRecord } from './identity-records.ts'
import { createKeyFile, openKeyFile } from './key-file.ts'
import { capabilitiesToSign } from './known-boards.ts'
import { Progress } from './progress.ts'
import { keyFileOf, keyOptionHelp, urlOf, urlOfOwnBoard, urlOption } from './shared-options.ts'
import { type CommandFields, freshNonce, type Signer, signCommand } from './sign.ts'
import { counted, grouped, inertJson, inertLine } from './terminal.ts'

export const identityCommand: Command = {
  name: 'identity',
  summary:
    'rotate moves your identity to a new key in a new file: the id, the handle and all rights stay, the old key is refused, and every ' +
    'delegation ends. For hosts, who have the data directory: export writes everything that the board stores about an identity, in private ' +
    'rooms too, into a new directory; erase removes it from the running board, signed by its operator: texts, files, documents, profile ' +
    'and handle. If it is interrupted, run it again to resume.',
  usage:
    'identity rotate NEWFILE [options]\n       broadside identity export ID DIR [options]\n       broadside identity erase ID [options]',
  optionHelp: [
    [
      '--url URL',
      'the board (default: BROADSIDE_URL; else erase takes the HOST and PORT of the settings, and rotate the board of "broadside login")',
    ],
    keyOptionHelp,
    ...settingsHelp,
    ['--reason TEXT', 'erase: why, public (default: Its owner asked for it.)'],
    ['--dry-run', 'erase: say what would be erased, and change nothing'],
  ],
  example: 'broadside identity erase IDENTITY_ID --data ./data --key operator.json --dry-run',
  options: {
    ...urlOption,
    ...settingsOptions,
    key: { type: 'string' },
    reason: { type: 'string' },
    'dry-run': { type: 'boolean' },
  },
  positionals: { min: 2, max: 3 },
  run(args, terminal) {
    const [verb, subject = '', directory] = args.positionals
    if (verb !== 'rotate' && verb !== 'export' && verb !== 'erase')
      throw new UsageError(`identity has no subcommand "${verb}". See: broadside identity --help`)
    if ((verb === 'export') !== (directory !== undefined))
      throw new UsageError(
        verb === 'export' ? 'identity export needs a new directory.' : `identity ${verb} takes one argument.`,
      )
    if (verb === 'rotate') return rotate(subject, args, terminal)
    if (!/^[0-9a-f]{64}$/.test(subject))
      throw new UsageError(
        `"${subject}" is not an identity id of 64 hex digits. "broadside call identity.get target=@handle" shows it.`,
      )
    return directory === undefined ? erase(subject, args, terminal) : exportAll(subject, directory, args, terminal)
  },
}

async function rotate(file: string, args: Arguments, terminal: Terminal): Promise<ExitCode> {
  const { signer } = await openKeyFile(keyFileOf(args))
  const client = new BoardClient({ url: urlOf(args), connections: 1 })
  try {
    const { serviceId } = await capabilitiesToSign(client, terminal)
    // Written to disk before the board knows it: if the process is killed in between, there is an unused key, never an identity without its
    // key.
    const next = createKeyFile(file)
    const command = {
      operation: 'identity.rotate',
      target: next.publicKey,
      public_key: signer.publicKey,
      timestamp: terminal.clock.wallSeconds(),
      nonce: freshNonce(),
    }
    const bytes = signingBytes(serviceId, command)
    const [signature, proof] = [signer, next].map((each) => each.sign(bytes).toString('base64url'))
    const { identity } = await client.command(Buffer.from(JSON.stringify({ ...command, signature, proof })))
    const id = textOf(recordOf(identity).id)
    print(
      terminal,
      { identity: id, key_file: file, public_key: next.publicKey },
      `${inertLine(id)} now has the key in ${file}. The old key is refused, and its delegations have ended.\n`,
    )
    return exitCodes.ok
  } finally {
    client.close()
  }
}

/** The result of reading a board's files. Throws CommandFailed with the sentence for the host. */
async function fromFiles<Found>(args: Arguments, read: (dataDirectory: string) => Found): Promise<Found> {
  const { dataDirectory } = await boardSettings(args)
  try {
    return read(dataDirectory)
  } catch (error) {
    throw commandError(error)
  }
}

async function exportAll(identity: string, to: string, args: Arguments, terminal: Terminal): Promise<ExitCode> {
  if (existsSync(to)) throw new CommandFailed(`${to} exists and is not overwritten. Name a new directory.`)
  const written = await fromFiles(args, (dataDirectory) => {
    const { service_id, origin } = readFacts(machine.disk, dataDirectory)
    mkdirSync(join(to, 'attachments'), { recursive: true, mode: 0o700 })
    const at = terminal.clock.wallSeconds()
    const lines = [inertJson({ type: 'identity', id: identity, service_id, origin, release, exported_at: at })]
    let [files, missing] = [0, 0]
    for (const held of recordsOf(machine.disk, dataDirectory, identity)) {
      lines.push(inertJson(shownRecord(held)))
      const file = held.relation === 'by' ? fileOf(dataDirectory, held) : undefined
      if (file === undefined) continue
      // Deleted, or redacted with its post.
      if (!existsSync(file.path)) missing++
      else {
        copyFileSync(file.path, join(to, 'attachments', file.sha256))
        files++
      }
    }
    writeFileSync(join(to, 'identity.jsonl'), `${lines.join('\n')}\n`, { mode: 0o600 })
    return { records: lines.length - 1, files, missing }
  })
  print(
    terminal,
    { identity, directory: to, ...written },
    `${counted(written.records, 'record')} and ${counted(written.files, 'file')} of ${identity} are in ${inertLine(to)}; ` +
      `${grouped(written.missing)} more files were deleted. The directory contains texts of private rooms: give it only to the owner of the identity.\n`,
  )
  return exitCodes.ok
}

async function erase(identity: string, args: Arguments, terminal: Terminal): Promise<ExitCode> {
  const { content, service } = await fromFiles(args, (dataDirectory) => ({
    content: erasableContentOf(machine.disk, dataDirectory, identity),
    service: readFacts(machine.disk, dataDirectory).service_id,
  }))
  const { events, files, documents, isErased } = content
  const what = `${counted(events.length, 'post')}, ${counted(files.length, 'file')}, ${counted(documents.length, 'document')}`
  if (args.flag('dry-run')) {
    const left = { posts: events.length, files: files.length, documents: documents.length, erased: isErased }
    print(
      terminal,
      { identity, dry_run: true, ...left },
      `These would be erased for ${identity}: ${what}${isErased ? '' : ', its profile and its handle'}. Nothing was changed.\n`,
    )
    return exitCodes.ok
  }
  const { signer } = await openKeyFile(keyFileOf(args))
  const client = new BoardClient({ url: urlOfOwnBoard(args, await boardSettings(args)), connections: 1 })
  const progress = new Progress({ terminal, unit: 'acts' })
  try {
    const { serviceId } = await capabilitiesToSign(client, terminal)
    if (serviceId !== service)
      throw new CommandFailed(
        `${client.url} is the board ${serviceId}, and the data directory is that of ${service}. Name the address of that board with --url. Nothing was erased.`,
      )
    const eraser = new Eraser({ client, signer, serviceId, terminal, progress })
    const { done, refused } = await eraser.run(identity, content, args.text('reason') ?? 'Its owner asked for it.')
    progress.clear()
    for (const words of refused.slice(0, refusedShownMax)) terminal.err(`${inertLine(words)}\n`)
    const isComplete = refused.length === 0
    const counts = `${counted(done, 'act')} signed and accepted, ${grouped(refused.length)} refused.\n`
    print(
      terminal,
      { identity, done, refused: refused.length, complete: isComplete },
      isComplete
        ? `${identity} is erased: ${what}. ${counts}${remains}`
        : `${identity} is NOT completely erased: it is closed, but what the refused acts name is still there. ${counts}${toFinish}`,
    )
    return isComplete ? exitCodes.ok : exitCodes.failed
  } finally {
    progress.clear()
    client.close()
  }
}

const refusedShownMax = 10
const remains =
  'What stays: ids, hashes and signatures in the public log, votes, the ledger, names of rooms, and what others wrote. Texts leave the ' +
  'disk within COMPACT_SECONDS; backups, mirrors and exports that were made before keep them.\n'

const eraseScopes = 'board:post,board:moderate,board:operate'
const toFinish =
  'See above why they were refused. Then run the same command again: it continues with what is left. The key must be that of an operator, ' +
  `or one that an operator delegated with the scopes ${eraseScopes}.\n`

/** Commands in one request. */
const batchMax = 64

type EraserOptions = {
  readonly client: BoardClient
  readonly signer: Signer
  readonly serviceId: string
  readonly terminal: Terminal
  readonly progress: Progress
}

class Eraser {
  readonly #options: EraserOptions

  constructor(options: EraserOptions) {
    this.#options = options
  }

  /** Erases the identity first, so that it adds nothing in the meantime. What an earlier call erased is skipped. */
  async run(
    identity: string,
    { events, files, documents, isErased }: ErasableContent,
    reason: string,
  ): Promise<{ done: number; refused: readonly string[] }> {
    const { client, progress } = this.#options
    const left: CommandFields[] = [
      ...(isErased ? [] : [{ operation: 'identity.erase', target: identity, reason }]),
      ...events.map((event_id) => ({ operation: 'event.redact', event_id, reason })),
      ...files.map((target) => ({ operation: 'blob.delete', target, reason })),
      ...documents.map((target) => ({ operation: 'docs.delete', target, reason })),
    ]
    if (left.length > 0) await this.#refuseBeyondScope(reason)
    const refused: string[] = []
    let done = 0
    const total = left.length
    // The first command alone: if it is refused, nothing else is tried.
    for (let size = 1; left.length > 0; size = batchMax) {
      const batch = left.splice(0, size)
      const answers = await client.commands(batch.map((fields) => this.#signed(fields)))
      let waitSeconds = 0
      for (const [n, answer] of answers.entries()) {
        if (answer instanceof Refused && answer.code === 'wrong_state') continue
        if (answer instanceof Refused && answer.status === 429) {
          left.push(batch[n]!)
          waitSeconds = Math.max(waitSeconds, answer.retryAfterSeconds ?? 1)
          continue
        }
        if (answer instanceof Refused && batch[n]!.operation === 'identity.erase') throw answer
        if (answer === undefined) throw new CommandFailed('The board did not answer. Run the same command again.')
        if (answer instanceof Refused) refused.push(`${batch[n]!.operation}: ${answer.message}`)
        else done++
      }
      progress.update(total - left.length, total, waitSeconds > 0 ? 'waiting for the limits of the board' : '')
      if (waitSeconds > 0) await pause(systemClock, waitSeconds * 1_000)
    }
    return { done, refused }
  }

  #signed(fields: CommandFields): Uint8Array {
    const { signer, serviceId, terminal } = this.#options
    return signCommand(fields, { signer, serviceId, nowSeconds: terminal.clock.wallSeconds() }).body
  }

  /**
   * Sends commands about a post that does not exist, one for each scope that an erasure needs besides that of its first act. A delegated
   * key that lacks one is refused here, before the identity is closed for good. Throws CommandFailed.
   */
  async #refuseBeyondScope(reason: string): Promise<void> {
    const { client } = this.#options
    const event_id = '0'.repeat(32)
    for (const fields of [
      { operation: 'event.redact', event_id, reason },
      { operation: 'room.hide', event_id, reason },
    ])
      await client.command(this.#signed(fields)).catch((error: unknown) => {
        if (!(error instanceof Refused)) throw error
        if (error.code !== 'forbidden' || error.field !== 'operation') return
        throw new CommandFailed(
          `${error.message}. Nothing was erased. Sign with an operator's own key, or with one that has every scope that this needs:\nbroadside delegate FILE --scopes ${eraseScopes}`,
        )
      })
  }
}
