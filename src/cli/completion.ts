/** `broadside completion`: shell scripts that complete commands, their subcommands, and the operations of `call`. */
import { operations } from '../../actors/operations.ts'
import { type Command, exitCodes, print, UsageError } from './command-line.ts'
import { verbWords } from './verbs.ts'

type Shell = (commands: readonly string[], subcommands: ReadonlyMap<string, readonly string[]>) => string

const shells: Readonly<Record<string, Shell>> = {
  bash: (commands, subcommands) =>
    [
      '_broadside() {',
      // The typed part of a word, and the word before it; for the second word, that is the command.
      '  local words="" typed="$2" before="$3"',
      `  if [ "$COMP_CWORD" -eq 1 ]; then words="${commands.join(' ')}"`,
      '  elif [ "$COMP_CWORD" -eq 2 ]; then',
      '    case "$before" in',
      ...[...subcommands].map(([name, words]) => `      ${name}) words="${words.join(' ')}" ;;`),
      '    esac',
      '  fi',
      '  COMPREPLY=()',
      '  [ -n "$words" ] && COMPREPLY=($(compgen -W "$words" -- "$typed"))',
      '}',
      'complete -o default -F _broadside broadside',
    ].join('\n'),
  zsh: (commands, subcommands) =>
    [
      '#compdef broadside',
      '_broadside() {',
      `  if (( CURRENT == 2 )); then compadd -- ${commands.join(' ')}; return; fi`,
      '  if (( CURRENT == 3 )); then',
      '    case "$words[2]" in',
      ...[...subcommands].map(([name, words]) => `      ${name}) compadd -- ${words.join(' ')}; return ;;`),
      '    esac',
      '  fi',
      '  _files',
      '}',
      'compdef _broadside broadside',
    ].join('\n'),
  fish: (commands, subcommands) =>
    [
      `complete -c broadside -n __fish_use_subcommand -f -a "${commands.join(' ')}"`,
      ...[...subcommands].map(
        ([name, words]) => `complete -c broadside -n "__fish_seen_subcommand_from ${name}" -a "${words.join(' ')}"`,
      ),
    ].join('\n'),
}

export function completionCommand(commands: readonly string[]): Command {
  return {
    name: 'completion',
    summary: 'Prints a script that completes commands in your shell.',
    usage: 'completion bash|zsh|fish',
    optionHelp: [],
    example: 'broadside completion bash > ~/.local/share/bash-completion/completions/broadside',
    options: {},
    positionals: { min: 1, max: 1 },
    async run(args, terminal) {
      const [name] = args.positionals
      const shell = Object.hasOwn(shells, name!) ? shells[name!] : undefined
      if (shell === undefined) throw new UsageError('completion takes bash, zsh or fish.')
      const script = shell(commands, subcommandsOf(commands))
      print(terminal, { shell: name, script }, `${script}\n`)
      return exitCodes.ok
    },
  }
}

function subcommandsOf(commands: readonly string[]): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, readonly string[]>([
    ['call', operations.map(({ name }) => name)],
    ['help', commands],
  ])
  for (const words of verbWords) {
    const [first = '', second] = words.split(' ')
    if (second !== undefined) found.set(first, [...new Set([...(found.get(first) ?? []), second])])
  }
  return found
}
