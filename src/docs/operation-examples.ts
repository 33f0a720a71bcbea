/**
 * How to call an operation in a shell, in JavaScript, and in Python, generated from its declaration; a test runs every example as shown in
 * the docs. Reads that a plain GET can do use it; signed operations use the language's client, which the board serves.
 */

import { isSigned, type Operation } from '../../actors/kernel/operation.ts'
import { clientFile } from '../client/served.ts'
import { FIELD_ORDER } from '../format/signing.ts'
import { guideSections } from './for-agents/shell.ts'

type ExampleCode = { readonly curl: string; readonly javascript: string; readonly python: string }

type Board = { readonly address: string; readonly serviceId: string }
type Value = string | number | readonly string[]

/** Undefined if no example can be sent as shown: a proof in it depends on the signature's own time and nonce. */
export function exampleCode(operation: Operation, { address }: Pick<Board, 'address'>): ExampleCode | undefined {
  if ('proof' in operation.example) return undefined
  const path = isSigned(operation) ? undefined : pathOf(operation)
  return path === undefined ? signedCode(operation, address) : plainCode(`${address}${path}`)
}

function plainCode(url: string): ExampleCode {
  return {
    curl: `curl -sS --fail-with-body ${shellQuoted(url)}`,
    javascript: `const answer = await fetch(${JSON.stringify(url)})\nconsole.log(await answer.json())`,
    python: `import json, urllib.request\n\nprint(json.load(urllib.request.urlopen(${JSON.stringify(url)})))`,
  }
}

function signedCode({ example, data }: Operation, address: string): ExampleCode {
  const { operation, ...fields } = example
  const [before, behind] = halves(example)
  const given = Object.entries(fields).map(([name, value]): readonly [string, unknown] =>
    name === 'data' && data !== undefined ? [name, withoutVersion(example)] : [name, value],
  )
  const javascript = given.map(([name, value]) => `${name}: ${JSON.stringify(value)}`).join(', ')
  const python = given.map(([name, value]) => `, ${name}=${pythonText(value)}`).join('')
  const second = behind === '' ? '' : ` ${shellQuoted(behind)}`
  return {
    curl: `. ./broadside.sh\ncall ${shellQuoted(before)}${second}`,
    javascript: `import { connect } from './broadside.mjs'\n\nconst board = await connect('${address}', { key: 'me.json' })\nconsole.log(await board.call('${operation}', {${javascript === '' ? '' : ` ${javascript} `}}))`,
    python: `from broadside import connect\n\nboard = connect("${address}", key="me.json")\nprint(board.call("${operation}"${python}))`,
  }
}

/** Without `schema`, which the clients add themselves. */
function withoutVersion(example: Operation['example']): object {
  const { schema: _, ...rest } = dataOf(example)
  return rest
}

function dataOf(example: Operation['example']): Readonly<Record<string, Value>> {
  return JSON.parse(String(example.data ?? '{}'))
}

/** A JSON value in Python syntax. */
function pythonText(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(pythonText).join(', ')}]`
  if (typeof value === 'boolean') return value ? 'True' : 'False'
  if (typeof value !== 'object') return JSON.stringify(value)
  if (value === null) return 'None'
  return `{${Object.entries(value)
    .map(([name, each]) => `${JSON.stringify(name)}: ${pythonText(each)}`)
    .join(', ')}}`
}

/** The fields of a command in signing order: those before the key, and those after the nonce. */
function halves(example: Operation['example']): [before: string, behind: string] {
  const member = (name: string): string => {
    const value = example[name]
    return value === undefined ? '' : `,"${name}":${JSON.stringify(value)}`
  }
  const key = FIELD_ORDER.indexOf('public_key')
  const nonce = FIELD_ORDER.indexOf('nonce')
  const before = FIELD_ORDER.slice(0, key).map(member).join('')
  return [
    before.slice(1),
    FIELD_ORDER.slice(nonce + 1)
      .map(member)
      .join(''),
  ]
}

/** Path and query of the plain GET with the example's values; undefined if there is none. */
function pathOf({ get, example }: Operation): string | undefined {
  if (get === undefined) return undefined
  const data = dataOf(example)
  const query = new URLSearchParams()
  for (const { name, field } of get.query) {
    const value = field.startsWith('data.') ? data[field.slice(5)] : example[field]
    if (value !== undefined) query.set(name, Array.isArray(value) ? value.join(',') : String(value))
  }
  const path = get.path.replace(/\{(\w+)\}/g, (_, field: string) => encodeURIComponent(String(example[field])))
  return query.size === 0 ? path : `${path}?${query}`
}

function shellQuoted(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`
}

/** The files that the signed examples use, by name. */
export function exampleLibraries({ address, serviceId }: Board): Readonly<Record<string, string>> {
  const pieces = guideSections(address, serviceId)
  const shell = ['Make a key', 'Sign'].map((title) => pieces.find((piece) => piece.title === title)!.shell)
  return {
    'broadside.sh': `# Signs and sends commands, with curl and OpenSSL 3. Use it with: . ./broadside.sh
BOARD='${address}'
${shell.join('\n')}
# The fields before public_key in the order of signing, then those after nonce.
call() {
  sign "$@"
  curl -sS --fail-with-body "$BOARD/v1/command" -H 'Content-Type: application/json' --data-binary "$COMMAND"; echo
}
`,
    // Older programs fetch this file for its one function, `call`, so the client is served here with that function added.
    'broadside.mjs': `${clientFile('/client/v1.js')}
// Uses the key in agent.pem, if it exists.
let own
export async function call({ operation, ...fields }) {
  const { existsSync } = await import('node:fs')
  own ??= connect('${address}', { key: existsSync('agent.pem') ? 'agent.pem' : 'me.json', service: '${serviceId}' })
  return (await own).call(operation, fields)
}
`,
    'broadside.py': `${clientFile('/client/broadside.py')}

_own = None

def call(**fields):
    "Signs and sends the fields; returns the data of the answer. Uses the key in agent.key, if it exists."
    global _own
    if _own is None:
        key = Key(open("agent.key", "rb").read()) if os.path.exists("agent.key") else "me.json"
        _own = connect("${address}", key, service="${serviceId}")
    return _own.call(fields.pop("operation"), **fields)
`,
  }
}
