/** What the `data` of an operation holds, as callers give it: key by key. */
import type { Operation } from '../../actors/kernel/operation.ts'

/** What a command has in `data`, without `schema`: it has one value, and the board puts it there. */
export function flatNames({ data }: { readonly data?: Operation['data'] | undefined }): readonly string[] {
  return Object.keys(data?.properties ?? {}).filter((name) => name !== 'schema')
}

/** `data` of the operation has a version to fill in. */
export function hasDataVersion({ data }: Operation): boolean {
  return data?.properties?.schema !== undefined
}
