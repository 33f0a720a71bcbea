/**
 * Where a tool's page is on this board. Ids of others' lists hold slashes, colons and whole URLs, which a path cannot carry through
 * every proxy: the path names a listing by a hash of its id.
 */
import { hash } from 'node:crypto'

const keyPattern = /^t_[0-9a-f]{32}$/

/** `t_` and the first 32 hex of the SHA-256 of the id. */
export function pathKeyOf(id: string): string {
  return `t_${hash('sha256', id, 'hex').slice(0, 32)}`
}

export function isPathKey(text: string): boolean {
  return keyPattern.test(text)
}

export function toolPath(id: string): string {
  return `/tools/${pathKeyOf(id)}`
}

export function reviewsPath(subject: string): string {
  return `/tools?subject=${subject}`
}
