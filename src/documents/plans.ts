/** How documents are carried out: one of a room by the room, any other by its owner's actor. */

import type { CreateArgs, DeleteArgs, WriteArgs } from '../../actors/documents/decide.ts'
import { type DocDeletedFacts, ownActor, type VersionFacts } from '../../actors/documents/documents.ts'
import { sizes } from '../../actors/kernel/limits.ts'
import { isGiven } from '../command/check.ts'
import { type Decided, idOf, type Plan, type Plans, type Shown } from '../command/plan.ts'
import type { Verified } from '../command/reply.ts'
import { mergedView, placeView } from './view.ts'

type CreateData = { readonly title: string }
type WriteData = { readonly base_version: number; readonly title?: string }

const thing = ({ command }: Verified) => ({ thing: command.target as string, field: 'target' })

const create: Plan = {
  to: ({ command, signer }) => ({
    actor: isGiven(command.room) ? (command.room as string) : ownActor(signer.id),
  }),
  args: ({ command, data }): CreateArgs => ({
    room: (command.room as string | undefined) ?? '',
    title: (data as CreateData).title,
    visibility: (command.visibility as CreateArgs['visibility'] | undefined) ?? '',
  }),
  show: written,
}

const write: Plan = {
  to: thing,
  args: ({ command, data }): WriteArgs => {
    const { base_version, title = '' } = data as WriteData
    const limits = { versions: sizes.doc_versions, bytes: sizes.doc_text_bytes }
    return { target: command.target as string, base_version, title, limits }
  },
  show: written,
}

const remove: Plan = {
  to: thing,
  args: ({ command }): DeleteArgs => ({
    target: command.target as string,
    reason: (command.reason as string | undefined) ?? '',
  }),
  show: (_verified, { facts }) => {
    const { target, reason } = facts as DocDeletedFacts
    return { values: { doc: { id: target, deleted: true, ...(reason === '' ? {} : { reason }) } } }
  },
}

/** The version that was made. Its text is what was sent, and stands here only where a merge made another. */
function written(verified: Verified, decided: Decided, actor: string): Shown {
  const { doc, version, title, visibility, size, sha256, merged } = decided.facts as VersionFacts
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
        ...(merged === undefined ? {} : { text: merged.text, merged: mergedView(versionId, merged) }),
      },
    },
  }
}

export const documentsPlans = { 'docs.create': create, 'docs.write': write, 'docs.delete': remove } satisfies Plans
