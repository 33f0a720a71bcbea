/** The commands that are operations: generated from the declarations, with a few names that people expect. */
import type { Operation } from '../../actors/kernel/operation.ts'
import { operationByName, operations } from '../../actors/operations.ts'
import { nearest } from '../format/nearest.ts'
import { type Command, UsageError } from './command-line.ts'
import { callOperation, commandOf, type Verb } from './operation-command.ts'
import { keyOptionHelp, urlOption, urlOptionHelp } from './shared-options.ts'

/** A command, and its arguments. */
export type Found = { readonly command: Command; readonly argv: readonly string[] }

/** Families: all operations with this prefix are their subcommands. */
export const families = ['room', 'docs', 'work', 'tools', 'webhook', 'receiver', 'conversation', 'credit'] as const

type Short = Pick<Verb, 'places'> & { readonly operation: string }

/** Other names for an operation, on their own or in a family. */
const short: Readonly<Record<string, Short>> = {
  search: { operation: 'events.list', places: ['query'] },
  threads: { operation: 'threads.list', places: ['room'] },
  'thread pin': { operation: 'thread.pin' },
  'thread lock': { operation: 'thread.lock' },
  'thread move': { operation: 'thread.move' },
  inbox: { operation: 'inbox.get' },
  'take-back': { operation: 'event.redact' },
  'room list': { operation: 'rooms.list', places: ['query'] },
  'room invite': { operation: 'room.invite.create' },
  'room accept': { operation: 'room.invite.accept' },
  'room policy': { operation: 'room.policy.get' },
  'tools search': { operation: 'tools.search', places: ['query'] },
  'docs list': { operation: 'docs.list', places: ['room'] },
  'work create': { operation: 'work.create', places: ['text'] },
  'work list': { operation: 'work.list', places: ['room'] },
  'conversation list': { operation: 'conversations.list' },
  'moderate reports': { operation: 'reports.list' },
  'moderate queue': { operation: 'reports.summary' },
  'moderate resolve': { operation: 'report.resolve' },
  'moderate log': { operation: 'room.modlog' },
  'moderate acts': { operation: 'moderation.log' },
  'moderate takedown': { operation: 'blob.takedown' },
  'moderate hide': { operation: 'room.hide' },
  'moderate restore': { operation: 'room.restore' },
  'moderate ban': { operation: 'room.ban' },
  'moderate unban': { operation: 'room.unban' },
  'moderate bans': { operation: 'room.bans' },
  'moderate suspend': { operation: 'identity.suspend' },
  'moderate unsuspend': { operation: 'identity.unsuspend' },
  'moderate grant': { operation: 'room.moderator.add' },
  'moderate revoke': { operation: 'room.moderator.remove' },
}

/** By the typed words, for example `work claim`. */
const verbs: ReadonlyMap<string, Verb> = new Map(
  [
    ...operations
      .filter(({ name }) => families.some((family) => name.startsWith(`${family}.`)))
      .map(({ name }): [string, Short] => [name.replaceAll(/[._]/g, ' '), { operation: name }]),
    ...Object.entries(short),
  ].flatMap(([words, { operation: name, ...more }]): [string, Verb][] => {
    const operation: Operation | undefined = operationByName.get(name)
    return operation === undefined ? [] : [[words, { words, operation, ...more }]]
  }),
)

export const verbWords: readonly string[] = [...verbs.keys()]

/** Finds the verb with the most words: `room member add`. */
export function verbCommand(first: string, argv: readonly string[]): Found {
  const policy = first === 'room' && argv[0] === 'policy' ? policyCommand(argv.slice(1)) : undefined
  if (policy !== undefined) return policy
  for (let length = Math.min(argv.length, 3); length >= 0; length--) {
    const verb = verbs.get([first, ...argv.slice(0, length)].join(' '))
    if (verb !== undefined) return { command: commandOf(verb), argv: argv.slice(length) }
  }
  return { command: familyCommand(first, argv[0]), argv }
}

/** The help of a family, shown if its subcommand is missing or unknown. */
function familyCommand(family: string, given: string | undefined): Command {
  const words = verbWords.filter((each) => each.startsWith(`${family} `))
  const meant = given === undefined ? undefined : nearest(`${family} ${given}`, words)
  return {
    name: family,
    summary: `Its subcommands: ${words.map((each) => each.slice(family.length + 1)).join(', ')}.`,
    usage: `${family} SUBCOMMAND [arguments]`,
    optionHelp: [],
    example: `broadside help ${words[0] ?? family}`,
    options: {},
    positionals: { min: 0, max: 100 },
    async run() {
      const hint = meant === undefined ? '' : ` Did you mean "${meant}"?`
      const wrong = given === undefined ? `${family} needs a subcommand.` : `${family} has no subcommand "${given}".`
      throw new UsageError(`${wrong}${hint} See: broadside help ${family}`)
    },
  }
}

export const callCommand: Command = {
  name: 'call',
  summary:
    'Runs any operation, with its fields as name=value; fields inside data are named like any other. A value @FILE is read from that file, - from standard input.',
  usage: 'call OPERATION [name=value …] [options]',
  optionHelp: [urlOptionHelp, keyOptionHelp],
  example: 'broadside call docs.create title=Plan text=@plan.md',
  notes: [`Operations: ${operations.map(({ name }) => name).join(' ')}`],
  options: { ...urlOption, key: { type: 'string' } },
  positionals: { min: 1, max: 40 },
  async run(args, terminal) {
    const name = args.positionals[0]!
    const operation = operationByName.get(name)
    if (operation !== undefined) return callOperation(operation, args, terminal)
    const meant = nearest(name, operationByName.keys())
    throw new UsageError(
      `There is no operation "${name}".${meant === undefined ? '' : ` Did you mean "${meant}"?`} See: broadside help call`,
    )
  },
}

/** `room policy` shows the policy; with an option, it sets it. */
function policyCommand(argv: readonly string[]): Found | undefined {
  const isSet = argv.some((each) => /^--(?!url\b|key\b|json\b|help\b)/.test(each))
  const operation = operationByName.get('room.policy.set')
  if (!isSet || operation === undefined) return undefined
  return { command: commandOf({ words: 'room policy', operation }), argv }
}
