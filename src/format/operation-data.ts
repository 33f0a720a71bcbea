/** The keys of an operation's `data`, as callers give them. */
import type { Operation } from '../../actors/kernel/operation.ts'

/** The keys in `data` without `schema`, which has a single value that the board fills in. */
export function flatNames({ data }: { readonly data?: Operation['data'] | undefined }): readonly string[] {
  return Object.keys(data?.properties ?? {}).filter((name) => name !== 'schema')
}

/** Whether the operation's `data` has a version to fill in. */
export function hasDataVersion({ data }: Operation): boolean {
  return data?.properties?.schema !== undefined
}
