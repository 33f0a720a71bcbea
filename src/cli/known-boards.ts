/**
 * Remembers the service id of each board since something was first signed for it. A signature names only the service it is for. So a server
 * that claims another board's id would receive commands that it could pass on to that board.
 *
 * One text file in the configuration directory with one line per board: the address and the service id. The last line of an address
 * applies, so a person can settle a conflict by adding a line. Loopback addresses may change boards freely, and several may lead to one
 * board: they never conflict.
 */

import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { isLoopbackHost } from '../../actors/kernel/networks.ts'
import { userSettings } from '../environment.ts'
import { BadAnswer, type BoardClient, type Capabilities } from './client.ts'
import { CommandFailed, type Terminal } from './command-line.ts'
import { inertLine } from './terminal.ts'

const serviceIdPattern = /^[a-z0-9][a-z0-9._-]{0,63}$/
/** Loopback ports come and go, so only the newest are stored. */
const localMax = 100

export function knownBoardsFile(): string {
  return join(userSettings().directory, 'known-boards')
}

/** A board's capabilities, to sign for it. Throws CommandFailed if it may impersonate another one. */
export async function capabilitiesToSign(client: BoardClient, terminal: Pick<Terminal, 'err'>): Promise<Capabilities> {
  const capabilities = await client.capabilities()
  checkKnownBoard(client.url, capabilities.serviceId, terminal)
  return capabilities
}

/** Throws CommandFailed if this address is known with another id, or this id with another address. */
export function checkKnownBoard(url: string, service: string, terminal: Pick<Terminal, 'err'>): void {
  if (!serviceIdPattern.test(service)) throw new BadAnswer(url, '/capabilities names no service_id')
  const place = addressOf(url)
  const file = knownBoardsFile()
  const known = knownIn(file)
  const before = known.get(place)
  if (before === service) return
  if (before !== undefined && !isLocal(place))
    throw new CommandFailed(
      `${place} was ${inertLine(before)} when you first signed for it, and now says that it is ${service}. It may be another board, or a server that wants your signatures for another board, so nothing was signed. If its operator says that it was recreated: ${trustCommand(place, service, file)}`,
    )
  const other = [...known].find(([each, id]) => id === service && !(isLocal(each) && isLocal(place)))?.[0]
  if (other !== undefined && other !== place)
    throw new CommandFailed(
      `${place} says that it is ${service}, and you know that board at ${inertLine(other)}. What you sign for one is also valid at the other, so nothing was signed. If both are the same board: ${trustCommand(place, service, file)}`,
    )
  known.delete(place)
  known.set(place, service)
  try {
    remember(file, known)
  } catch (error) {
    terminal.err(
      `The service id of ${place} could not be saved in ${file} (${inertLine((error as Error).message)}), so a different board at this address will not be detected next time.\n`,
    )
  }
}

/** The address without the parts that do not identify a board: name and password, query, trailing slashes. */
function addressOf(url: string): string {
  const { protocol, hostname, port, pathname } = new URL(url)
  return `${protocol}//${hostname}${port === '' ? '' : `:${port}`}${pathname.replace(/\/+$/, '')}`
}

function isLocal(place: string): boolean {
  return isLoopbackHost(URL.parse(place)?.hostname ?? '')
}

function knownIn(file: string): Map<string, string> {
  const known = new Map<string, string>()
  for (const line of textOf(file).split('\n')) {
    const [place, service, ...rest] = line.trim().split(/\s+/)
    if (place === undefined || service === undefined || rest.length > 0 || !URL.canParse(place)) continue
    known.delete(place)
    known.set(place, service)
  }
  return known
}

/** '' if no board is known yet. Throws CommandFailed if the file cannot be read. */
function textOf(file: string): string {
  try {
    return existsSync(file) ? readFileSync(file, 'utf8') : ''
  } catch (error) {
    const why = inertLine((error as Error).message)
    throw new CommandFailed(
      `${file}, which records the service id of each board, cannot be read (${why}), so nothing was signed. Make it readable, or move it away.`,
    )
  }
}

function remember(file: string, known: ReadonlyMap<string, string>): void {
  const all = [...known]
  const local = all.filter(([place]) => isLocal(place)).slice(-localMax)
  const kept = all.filter((entry) => !isLocal(entry[0]) || local.includes(entry))
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
  const next = `${file}.${process.pid}`
  writeFileSync(next, kept.map(([place, service]) => `${place} ${service}\n`).join(''), { mode: 0o600 })
  renameSync(next, file)
}

function trustCommand(place: string, service: string, file: string): string {
  return `echo '${place.replaceAll("'", '%27')} ${service}' >> '${file}'`
}
