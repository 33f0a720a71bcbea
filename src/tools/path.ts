/**
 * The path of a tool's page on this board. Ids from others' lists contain slashes, colons and whole URLs, which not every proxy
 * passes through in a path. So the path names a listing by a hash of its id.
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
