/** Code that is not wired up does not compile: each fault below is seeded into a copy of the sources, and `tsc` names its file. */
import { spawnSync } from 'node:child_process'
import { cpSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect, test } from 'vitest'
import { scratchDirectory } from '../support/scratch.ts'

const project = resolve(import.meta.dirname, '../..')

/** What is changed where, and the file in which the compiler has to object. */
const faults: readonly { what: string; file: string; from: string; to: string; reported: string }[] = [
  {
    what: 'a write without a decider',
    file: 'actors/documents/decide.ts',
    from: "  'docs.delete': remove,\n",
    to: '',
    reported: 'actors/deciders.ts',
  },
  {
    what: 'a write without a plan',
    file: 'src/documents/plans.ts',
    from: "'docs.write': write, ",
    to: '',
    reported: 'src/board/plans.ts',
  },
  {
    what: 'a read that nothing answers',
    file: 'src/documents/reads.ts',
    from: "  'docs.list': list,\n",
    to: '',
    reported: 'src/workers/reads.ts',
  },
  {
    what: 'a refusal code that is not declared',
    file: 'actors/people/decide.ts',
    from: "refuse('wrong_state'",
    to: "refuse('wrong_sate'",
    reported: 'actors/people/decide.ts',
  },
  {
    what: 'a question that has no read',
    file: 'src/works/welcome.ts',
    from: "op: 'credit.unwelcomed'",
    to: "op: 'credit.unwelcome'",
    reported: 'src/works/welcome.ts',
  },
  {
    what: 'a letter that has no decider',
    file: 'src/payments/sales.ts',
    from: "'sale.drop'",
    to: "'sale.dropped'",
    reported: 'src/payments/sales.ts',
  },
  {
    what: 'a service of plans that no capability declares',
    file: 'src/webhooks/service.ts',
    from: '    readonly hooks: WebhookService\n',
    to: '',
    reported: 'src/webhooks/plans.ts',
  },
  {
    what: 'a service of plans that the board does not give',
    file: 'src/board/writes.ts',
    from: "  readonly blobs: Services['blobs']\n",
    to: '',
    reported: 'src/board/command-router.ts',
  },
  {
    what: 'an argument that the decider does not take',
    file: 'src/documents/plans.ts',
    from: 'base_version, title, limits }',
    to: 'base: base_version, title, limits }',
    reported: 'src/documents/plans.ts',
  },
  {
    what: 'a fact that is not decided',
    file: 'src/attachments/plans.ts',
    from: 'const { target, reason } = facts',
    to: 'const { target, reasons: reason } = facts',
    reported: 'src/attachments/plans.ts',
  },
  {
    what: 'a field of a command that its operation does not have',
    file: 'src/rooms/plans.ts',
    from: 'command.event_id',
    to: 'command.event',
    reported: 'src/rooms/plans.ts',
  },
  {
    what: 'shares of a list that nothing merges',
    file: 'src/rooms/plans.ts',
    from: "  'reports.list': { gather: newestFirst('reports') },\n",
    to: '',
    reported: 'src/board/plans.ts',
  },
  {
    what: 'a read that is said to be answered by the index of tools, which does not know it',
    file: 'actors/webhooks/operations.ts',
    from: "answeredBy: 'delivery'",
    to: "answeredBy: 'directory'",
    reported: 'src/tools/ask-index.ts',
  },
  {
    what: 'text, where the board asks itself and wants the value',
    file: 'src/attachments/reads.ts',
    from: "'blob.needed': ({ state }, { args }) => known(",
    to: "'blob.needed': ({ state }, { args }) => ok(",
    reported: 'src/workers/reads.ts',
  },
  {
    what: 'facts that the record of this act does not hold',
    file: 'src/payments/sale-reads.ts',
    from: 'const { sent, json } = begun.in',
    to: 'const { sent, jsonText: json } = begun.in',
    reported: 'src/payments/sale-reads.ts',
  },
  {
    what: 'a field of a reply that its decider does not give',
    file: 'src/works/clock.ts',
    from: 'answer.reply.written',
    to: 'answer.reply.wrote',
    reported: 'src/works/clock.ts',
  },
  {
    what: 'a value that the answer to a read does not have',
    file: 'src/payments/sales.ts',
    from: 'dataOf(answer).sale',
    to: 'dataOf(answer).sold',
    reported: 'src/payments/sales.ts',
  },
]

function compile(directory: string): string {
  const compiler = join(project, 'node_modules/typescript/bin/tsc')
  const args = [compiler, '--noEmit', '-p', join(directory, 'tsconfig.of-these.json')]
  return spawnSync(process.execPath, args, { cwd: directory, encoding: 'utf8' }).stdout
}

test('a missing decider, plan, read or service, and a misspelled code, name, argument, fact or field, are errors of the compiler', () => {
  const directory = scratchDirectory()
  for (const name of ['src', 'actors', 'storage', 'tsconfig.json', 'package.json'])
    cpSync(join(project, name), join(directory, name), { recursive: true })
  symlinkSync(join(project, 'node_modules'), join(directory, 'node_modules'))
  const settings = { extends: './tsconfig.json', include: ['src', 'actors', 'storage'] }
  writeFileSync(join(directory, 'tsconfig.of-these.json'), JSON.stringify(settings))
  expect(compile(directory)).toBe('')
  const expected = faults.map(({ what, file, from, to, reported }) => {
    const path = join(directory, file)
    const source = readFileSync(path, 'utf8')
    expect(source, what).toContain(from)
    writeFileSync(path, source.replace(from, to))
    const line = source.slice(0, source.indexOf(from)).split('\n').length
    return { what, at: reported === file ? `${file}(${line},` : `${reported}(` }
  })
  const said = compile(directory)
  for (const { what, at } of expected) expect(said, what).toContain(at)
})
