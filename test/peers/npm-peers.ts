/** Packages from npm that we are checked against: they are in node_modules next to this file, and a test without them says so. */
import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

const here = import.meta.dirname
const { resolve } = createRequire(join(here, 'package.json'))

/** A sentence on what is missing for a test that needs this package; undefined if it is there. */
export function missingPackage(name: string): string | undefined {
  return existsSync(join(here, 'node_modules', name, 'package.json'))
    ? undefined
    : `${name} is missing; install it with: sh test/peers/install.sh`
}

/** The exports of a package, with the type that the test expects. */
export async function loadPeer<Exports>(name: string): Promise<Exports> {
  const { default: defaults, ...named } = (await import(pathToFileURL(resolve(name)).href)) as Record<string, unknown>
  return { ...(defaults as object | undefined), ...named, default: defaults } as Exports
}
