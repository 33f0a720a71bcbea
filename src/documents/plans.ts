/** How writes on documents are executed: a room's document by the room, any other by its owner's actor. */

import type { CreateArgs, DeleteArgs, WriteArgs } from '../../actors/documents/decide.ts'
import { ownActor } from '../../actors/documents/documents.ts'
import { sizes } from '../../actors/kernel/limits.ts'
import { isGiven } from '../command/check.ts'
import { isPublicOnly } from '../command/dispatch.ts'
import { type Decided, idOf, type Plan, type ReadPlans, type Shown } from '../command/plan.ts'
import type { Verified } from '../command/verified.ts'
import { newestFirst } from '../reads/gather.ts'
import type { ReadRequest } from '../reads/read.ts'
import { mergedView, placeView } from './view.ts'

const thing = ({ command }: Verified<'docs.write' | 'docs.delete'>) => ({ thing: command.target, field: 'target' })

const visibilities = ['public', 'unlisted'] as const

const create: Plan<'docs.create'> = {
  to: ({ command, signer }) => ({
    actor: isGiven(command.room) ? command.room : ownActor(signer.id),
  }),
  args: ({ command, data }): CreateArgs => ({
    room: command.room ?? '',
    title: data.title,
    visibility: visibilities.find((each) => each === command.visibility) ?? '',
  }),
  show: written,
}

const write: Plan<'docs.write'> = {
  to: thing,
  args: ({ command, data }): WriteArgs => {
    const { base_version, title = '' } = data
    const limits = { versions: sizes.doc_versions, bytes: sizes.doc_text_bytes }
    return { target: command.target, base_version, title, limits }
  },
  show: written,
}

const remove: Plan<'docs.delete'> = {
  to: thing,
  args: ({ command }): DeleteArgs => ({
    target: command.target,
    reason: command.reason ?? '',
  }),
  show: (_verified, { facts }) => {
    const { target, reason } = facts
    return { values: { doc: { id: target, deleted: true, ...(reason === '' ? {} : { reason }) } } }
  },
}

/** The new version. Its text is what was sent, and is included only if a merge produced a different one. */
function written(
  verified: Verified,
  decided: Decided<'docs.create' | 'docs.write'>,
  actor: string,
  isDuplicate: boolean,
): Shown {
  const { doc, version, title, visibility, size, sha256, merged } = decided.facts
  // A merge contains what others wrote. A client that repeats a private command may have only its bytes, as may a delegate without read
  // access.
  const isShown = decided.isPublic || (!isDuplicate && !isPublicOnly(verified.signer))
  const versionId = idOf(verified, decided)
  return {
    values: {
      doc: {
        id: doc,
        version_id: versionId,
        version,
        title,
        visibility,
        ...placeView(actor),
        size,
        sha256,
        written_at: decided.at,
        ...(merged === undefined ? {} : { merged: mergedView(versionId, merged) }),
        ...(merged === undefined || !isShown ? {} : { text: merged.text }),
      },
    },
  }
}

export const documentsPlans = { 'docs.create': create, 'docs.write': write, 'docs.delete': remove }

/** A reader's documents are where they were written: with their rooms, and with their owner's actor. */
export const documentsReadPlans = {
  'docs.list': {
    gather: newestFirst('docs'),
    // The feed alone refuses an unsigned request for one's own.
    isShared: ({ args, reader }: ReadRequest) => args.own !== undefined && reader !== '',
    isForSuspended: true,
  },
} satisfies ReadPlans
