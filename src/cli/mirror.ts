/** `broadside mirror`: creates a verified copy of any C2SP log as static files, and updates it. */
import { type Next, nextOf } from '../../actors/log/rotation.ts'
import { openCheckpoint } from '../../storage/checkpoint.ts'
import { parseVkey, type VerifierKey } from '../../storage/note.ts'
import { TILE_WIDTH } from '../../storage/tile-path.ts'
import { recordOf, textOf } from '../export-check/signed-line.ts'
import { foreignJson } from '../format/foreign-json.ts'
import { type Command, CommandFailed, exitCodes, print, Unverified, UsageError } from './command-line.ts'
import { fetchOnce, followLog, reasonOf } from './mirror-follow.ts'
import { entriesIn, MirrorStore } from './mirror-store.ts'
import { Progress } from './progress.ts'
import { bytesText, durationText, grouped, inertLine } from './terminal.ts'

export const mirrorCommand: Command = {
  name: 'mirror',
  summary:
    'Copies a log’s entries and hashes as static files, verifies everything new, and resumes where it stopped; verify DIR checks the copy. Works with any C2SP tlog-tiles log.',
  usage: 'mirror URL DIR [--vkey VKEY] [--prefix]',
  optionHelp: [
    [
      '--vkey VKEY',
      'the log’s key, pinned; saved in DIR/vkey. Without it the board is asked once, and its answer is trusted',
    ],
    ['--prefix', 'checkpoint and tile/ are directly under URL, even without a path: a log at the root of its host'],
  ],
  notes: [
    'Exits with 4 once the log is closed and another one goes on (after "log rotate" or "restored --lost"): the mirror is complete, and the',
    'new log needs a mirror of its own, in another directory, with the key that is printed.',
  ],
  example: 'broadside mirror http://127.0.0.1:8787 board-mirror',
  options: { vkey: { type: 'string' }, prefix: { type: 'boolean' } },
  positionals: { min: 2, max: 2 },
  async run(args, terminal) {
    const [url = '', directory = ''] = args.positionals
    if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol))
      throw new UsageError(`"${inertLine(url)}" is not an address: write it like http://127.0.0.1:8787.`)
    const store = new MirrorStore(directory)
    const address = url.replace(/\/+$/, '')
    const isPrefix = args.flag('prefix')
    const { vkey, isPinned } = await keyFor(store, `${address}${isPrefix ? '' : '/log'}/vkey`, args.text('vkey'))
    const key = parseVkey(vkey)
    if (!key.ok) throw new UsageError(`"${inertLine(vkey)}" is not a log's key: ${key.problem}.`)
    const progress = new Progress({ terminal, unit: 'entries' })
    try {
      const loss = await lossOf(isPrefix ? undefined : address, key.value.name)
      if (loss !== undefined) refuseLost(store, key.value, loss)
      const found = await followLog({
        store,
        prefix: isPrefix ? address : prefixOf(address, key.value.name),
        key: key.value,
        progress: (done, of) => progress.update(done, of),
      })
      progress.clear()
      if (store.text('vkey') === '') store.keepText('vkey', `${vkey}\n`)
      const note = isPinned
        ? 'with the key you pinned'
        : 'with the key that the board named (saved in DIR/vkey from now on)'
      const kept =
        found.before === 0
          ? ''
          : `, after ${grouped(found.before)} from earlier runs (not checked again; broadside verify ${inertLine(directory)} does that)`
      const next = followedBy(store, found.size)
      print(
        terminal,
        {
          log: key.value.name,
          size: found.size,
          before: found.before,
          bytes: found.bytesFetched,
          pinned: isPinned,
          ...(next !== undefined && { next: { log: next.origin, vkey: next.vkey } }),
          ...(loss !== undefined && {
            lost: { size: loss.size, next: { log: loss.next.origin, vkey: loss.next.vkey } },
          }),
        },
        `${inertLine(key.value.name)}: ${grouped(found.size - found.before)} new entries verified${kept} ` +
          `(${bytesText(found.bytesFetched)} in ${durationText(progress.secondsSpent())}), checkpoint of ${grouped(found.size)} signed by the log, ${note}\n`,
      )
      if (next !== undefined)
        terminal.out(
          `This log is closed: ${inertLine(next.origin)} follows it, with the key ${inertLine(next.vkey)}\n` +
            'Mirror it into another directory, with --vkey.\n',
        )
      if (loss !== undefined)
        terminal.out(
          `The board says that it was restored from a backup, and that this log is lost after ${grouped(loss.size)} entries. ${followedByWords(loss.next)}\n`,
        )
      // Nobody reads the output of a timer, and with 0 they would not notice that the mirror has stopped growing.
      return next === undefined && loss === undefined ? exitCodes.ok : exitCodes.closed
    } finally {
      progress.clear()
    }
  },
}

type Loss = { readonly size: number; readonly next: Next }

/**
 * A board that was restored from a backup declares that the end of its old log is lost; no entry of that log names the next one. `address`:
 * of the board; undefined if only tiles are known.
 */
async function lossOf(address: string | undefined, origin: string): Promise<Loss | undefined> {
  if (address === undefined) return undefined
  const nothing = { status: 0, body: Buffer.alloc(0) }
  const { status, body } = await fetchOnce(`${address}/api/log/history`).catch(() => nothing)
  const found = status === 200 ? recordOf(recordOf(foreignJson(body.toString('utf8'))).data).logs : undefined
  const logs = Array.isArray(found) ? found.map(recordOf) : []
  const at = logs.findIndex((log) => log.origin === origin && log.lost === true)
  const next = recordOf(logs[at + 1])
  if (at < 0) return undefined
  return { size: Number(logs[at]!.tree_size), next: { origin: textOf(next.origin), vkey: textOf(next.vkey) } }
}

/**
 * Refuses to continue a mirror that is longer than the log that is left, because its remaining entries exist nowhere else. Throws
 * Unverified.
 */
function refuseLost(store: MirrorStore, key: VerifierKey, { size, next }: Loss): void {
  const kept = openCheckpoint(store.text('checkpoint'), key)
  if (!kept.ok || kept.value.size <= size) return
  throw new Unverified(
    `The board says that it was restored from a backup, and that this log is lost after ${size} entries. This mirror has ${kept.value.size}: keep it, and offer it to the host, who can give it to "broadside restored --lost --apply-from". ${followedByWords(next)}`,
  )
}

const followedByWords = ({ origin, vkey }: Next): string =>
  `${inertLine(origin)} follows, with the key ${inertLine(vkey)}: mirror it into another directory, with --vkey.`

/** The successor named by the last entry of a closed log, which is proved like every other entry. */
function followedBy(store: MirrorStore, size: number): Next | undefined {
  if (size === 0) return undefined
  const index = Math.floor((size - 1) / TILE_WIDTH)
  const bundle = store.read({ kind: 'entries', level: 0, index, width: size - index * TILE_WIDTH })
  const last = bundle === undefined ? undefined : entriesIn(bundle)?.at(-1)
  return last === undefined ? undefined : nextOf(last)
}

/** The key that was given, or stored at the first run, or named at this address. */
async function keyFor(
  store: MirrorStore,
  place: string,
  given: string | undefined,
): Promise<{ vkey: string; isPinned: boolean }> {
  const kept = store.text('vkey').trim()
  if (given !== undefined && kept !== '' && given !== kept)
    throw new Unverified(
      `This mirror was made with another key (${inertLine(kept)}). Use another directory for another log.`,
    )
  if (given !== undefined || kept !== '') return { vkey: given ?? kept, isPinned: true }
  const { status, body } = await fetchOnce(place).catch((error: unknown) => {
    throw new CommandFailed(`${place} cannot be read (${reasonOf(error)}).`)
  })
  if (status !== 200) throw new UsageError(`${place} answered ${status}. Pass the key of this log with --vkey.`)
  const vkey = body.toString('utf8').trim()
  const key = parseVkey(vkey)
  if (!key.ok) throw new CommandFailed(`${place} did not return a log key (${key.problem}). Pass it with --vkey.`)
  return { vkey, isPinned: false }
}

/**
 * The address of the tiles: for a board's own address, `/log/<name>` with the name from the log's origin. Any other address is the prefix
 * itself, as is one without a path if the origin has no `log/` path.
 */
function prefixOf(address: string, origin: string): string {
  const path = origin.slice(origin.indexOf('/') + 1)
  return new URL(address).pathname === '/' && path.startsWith('log/') ? `${address}/${path}` : address
}
