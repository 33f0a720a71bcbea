/**
 * Reads of hooks: their owner's lists, and what the delivery thread needs. All hooks of one owner are in one shard, which
 * src/webhooks/service.ts queries, so nothing is ever absent here. The outcome of deliveries is known elsewhere, and added
 * there.
 */
import type { Hook, HookFacts } from '../../actors/webhooks/webhooks.ts'
import {
  badCursor,
  type KnownAnswer,
  known,
  limitOf,
  ok,
  opened,
  paging,
  type ReadAnswer,
  type ReadContext,
  type ReadRequest,
  type Reads,
} from '../reads/read.ts'

export const webhooksReads = {
  'webhook.list': list,
  'hook.of': ({ state }, { args }) => known({ hooks: state.hooks.of(String(args.owner)).map(hookView) }),
  'hook.ends': ({ state }, { args }) =>
    known({ ends: state.hooks.of(String(args.owner)).map(({ facts }) => facts.expires) }),
  'hook.changed': changed,
  'hook.all': all,
  'hook.count': ({ state }) => known({ count: state.hooks.count }),
} satisfies Reads

/** A hook in the form that the delivery thread uses. */
export type HookView = HookFacts & Pick<Hook, 'owner' | 'epoch' | 'createdAt' | 'former' | 'wakes' | 'redeliveries'>

function hookView({ facts, owner, epoch, createdAt, former, wakes, redeliveries }: Hook): HookView {
  return { ...facts, owner, epoch, createdAt, former, wakes, redeliveries }
}

/** The version of a hook as a string: it changes with every change of the hook. */
export function standing({ hook, epoch, wakes }: Pick<HookView, 'hook' | 'epoch' | 'wakes'>): string {
  return `${hook} ${epoch} ${wakes}`
}

export type ChangedHooks = {
  readonly hooks: readonly HookView[]
  readonly same: readonly Pick<HookView, 'hook' | 'owner' | 'epoch' | 'delegation'>[]
}

/** All hooks of one identity, in full if their version is not in `known` (comma-separated). */
function changed({ state }: ReadContext, { args }: ReadRequest): KnownAnswer<ChangedHooks> {
  const asKnown = new Set(String(args.known).split(','))
  const isSame = ({ facts: { hook }, epoch, wakes }: Hook) => asKnown.has(standing({ hook, epoch, wakes }))
  const own = state.hooks.of(String(args.owner))
  const same = own.filter(isSame).map(({ facts: { hook, delegation }, owner, epoch }) => ({
    ...{ hook, owner, epoch },
    ...(delegation === undefined ? {} : { delegation }),
  }))
  const found: ChangedHooks = { hooks: own.filter((each) => !isSame(each)).map(hookView), same }
  return known(found)
}

/** A webhook as shown to its owner; the secret is not known here. */
export function webhookView(id: string, facts: Omit<HookFacts, 'hook'>, createdAt: number) {
  const { url, kinds, filter, expires } = facts
  return {
    id,
    url,
    kinds,
    ...(filter.room === undefined ? {} : { room: filter.room }),
    created_at: createdAt,
    ...(expires === 0 ? {} : { expires_at: expires }),
  }
}

function list(
  context: ReadContext,
  { args, reader }: ReadRequest,
): ReadAnswer<{ webhooks: readonly { readonly id: string }[] }> {
  const name = `webhooks:${reader}`
  const cursor = opened(context, name, args)
  if (cursor === undefined) return badCursor
  // Paged by the number of the record that created it, so that a deletion does not shift the page.
  const behind = cursor.from ?? 0
  const own = context.state.hooks.of(reader).filter(({ facts, epoch }) => facts.form === 'webhook' && epoch > behind)
  const shown = own.slice(0, limitOf(args))
  const webhooks = shown.map(({ facts, createdAt }) => webhookView(facts.hook, facts, createdAt))
  return ok({ webhooks, ...paging(context, name, own.length > shown.length ? shown.at(-1)!.epoch : undefined) })
}

const allMax = 500

/** Every hook of this shard in pages, by the number of its first record. */
function all(
  { state }: ReadContext,
  { args }: ReadRequest,
): KnownAnswer<{ readonly hooks: readonly HookView[]; readonly next: number; readonly more: boolean }> {
  const behind = Number(args.after ?? 0)
  const hooks = [...state.hooks.all()].filter(({ epoch }) => epoch > behind).sort((a, b) => a.epoch - b.epoch)
  const shown = hooks.slice(0, allMax)
  const page = { hooks: shown.map(hookView), next: shown.at(-1)?.epoch ?? behind, more: hooks.length > shown.length }
  return known(page)
}
