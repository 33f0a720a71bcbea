/** `broadside check-config`: whether a board would start with these settings, and what each of them does. */
import { environment, isSetting, settings } from '../environment.ts'
import { checkHost } from '../listening.ts'
import { configHelp, misspelledSettings, takeSettingsFile } from './board-settings.ts'
import { type Command, exitCodes, keepAlive, print } from './command-line.ts'
import { inertLine } from './terminal.ts'

export const checkConfigCommand: Command = {
  name: 'check-config',
  summary:
    'Checks the settings of a board as a start does, and prints each with its value, its source, and its meaning.',
  usage: 'check-config [--config FILE]',
  optionHelp: [configHelp],
  example: 'broadside check-config --config /etc/broadside.json',
  options: { config: { type: 'string' } },
  positionals: { min: 0, max: 0 },
  async run(args, terminal) {
    const before = { ...environment() }
    const file = takeSettingsFile(args)
    const [{ readConfig, readSettings }, { checkPorts }] = await Promise.all([
      import('../config.ts'),
      import('../http/own-ports.ts'),
    ])
    const values = readSettings()
    const config = readConfig()
    checkPorts(config)
    await keepAlive(checkHost(config.host))
    const names = Object.keys(settings).filter((name) => isSetting(name))
    const rows = names.map((name) => ({
      name,
      value: shown(name, values.get(name) ?? ''),
      origin: before[name] ? 'environment' : file?.given.has(name) === true ? file.path : 'default',
      meaning: settings[name],
    }))
    for (const row of rows) {
      const { name, value, origin, meaning } = row
      const from = origin === 'default' ? '' : `  (${origin})`
      print(terminal, row, `${name}=${inertLine(value)}${from}\n    ${meaning}\n`)
    }
    const misspelled = misspelledSettings(before)
    for (const [name, meant] of misspelled)
      terminal.err(`${inertLine(name)} in the environment is not a setting. Did you mean ${meant}?\n`)
    if (misspelled.length > 0) return exitCodes.failed
    const given = rows.filter(({ origin }) => origin !== 'default').length
    terminal.out(`\nA board would start with these settings: ${given} given, ${rows.length - given} by default.\n`)
    return exitCodes.ok
  },
}

/** Hides keys, which the addresses of nodes often contain. */
function shown(name: string, value: string): string {
  return name === 'PAY_NODES' ? value.replace(/(https?:\/\/)[^/,]*@|(\/\/[^/,]+)\/[^,]*/g, '$1$2/…') : value
}
