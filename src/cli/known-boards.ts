/**
 * Which service id each board has, as it was when something was first signed for it. A signature names the service that it is for and
 * nothing else: a server that calls itself by the id of another board would be given commands that it could pass on to that one.
 *
 * One text file in the configuration directory, a line for each: the address and the service id. The last line of an address
 * counts, so that a person settles a doubt with one line more. Addresses of this machine change boards as they like, and may be
 * several ways to one: between them there is no doubt.
 */

import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { isLoopbackHost } from '../../actors/kernel/networks.ts'
import { userSettings } from '../environment.ts'
import { BadAnswer, type BoardClient, type Capabilities } from './client.ts'
import { CommandFailed, type Terminal } from './command-line.ts'
import { inertLine } from './terminal.ts'

const serviceIdPattern = /^[a-z0-9][a-z0-9._-]{0,63}$/
/** Ports of this machine come and go. */
const localMax = 100

export function knownBoardsFile(): string {
  return join(userSettings().directory, 'known-boards')
}

/** What a board says of itself, to sign for it. Throws CommandFailed where it may be taken for another one. */
export async function capabilitiesToSign(client: BoardClient, terminal: Pick<Terminal, 'err'>): Promise<Capabilities> {
  const capabilities = await client.capabilities()
  mayBeSignedFor(client.url, capabilities.serviceId, terminal)
  return capabilities
}

/** Throws CommandFailed where a board at this address is known by another id, or this id at another address. */
export function mayBeSignedFor(url: string, service: string, terminal: Pick<Terminal, 'err'>): void {
  if (!serviceIdPattern.test(service)) throw new BadAnswer(url, '/capabilities names no service_id')
  const place = placeOf(url)
  const file = knownBoardsFile()
  const known = knownIn(file)
  const before = known.get(place)
  if (before === service) return
  if (before !== undefined && !isLocal(place))
    throw new CommandFailed(
      `${place} was ${inertLine(before)} when you first signed for it, and now says that it is ${service}. It may be another board, or want what you sign for one, so nothing was signed. If its operator says that it was made anew: ${settledBy(place, service, file)}`,
    )
  const other = [...known].find(([each, id]) => id === service && !(isLocal(each) && isLocal(place)))?.[0]
  if (other !== undefined && other !== place)
    throw new CommandFailed(
      `${place} says that it is ${service}, and you know that board at ${inertLine(other)}. What you sign for the one also holds at the other, so nothing was signed. If both are the same board: ${settledBy(place, service, file)}`,
    )
  known.delete(place)
  known.set(place, service)
  try {
    remember(file, known)
  } catch (error) {
    terminal.err(
      `The service id of ${place} could not be kept in ${file} (${inertLine((error as Error).message)}): if another answers there next time, it is not noticed.\n`,
    )
  }
}

/** Without what is no part of where a board is: a name and password, a query, slashes at the end. */
function placeOf(url: string): string {
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

/** '' where no board is known yet. Throws CommandFailed where it cannot be told. */
function textOf(file: string): string {
  try {
    return existsSync(file) ? readFileSync(file, 'utf8') : ''
  } catch (error) {
    const why = inertLine((error as Error).message)
    throw new CommandFailed(
      `${file} cannot be read (${why}), and says which service id each board has: nothing was signed. Make it readable, or move it away.`,
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

function settledBy(place: string, service: string, file: string): string {
  return `echo '${place.replaceAll("'", '%27')} ${service}' >> '${file}'`
}
