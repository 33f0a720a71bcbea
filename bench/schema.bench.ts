/**
 * What does it cost to check that a body is a valid command, beyond parsing its JSON?
 *
 * A post of 600 bytes as received. The limit is JSON.parse of its text; the plain alternative is JSON.parse and one ajv schema of the same
 * fields, which detects neither duplicate keys nor invalid UTF-8.
 */
import { Ajv } from 'ajv'
import { fields } from '../actors/kernel/fields.ts'
import { signCommand, signerFromSeed } from '../src/cli/sign.ts'
import { checkOperation, checkShape } from '../src/command/check.ts'
import { signingBytes } from '../src/format/signing.ts'
import { parseStrictJson } from '../src/format/strict-json.ts'
import { compare, looped } from './compare.ts'
import type { Bench } from './report.ts'

const service = 'bs-0123456789abcdef'
const loops = 100

export const schema: Bench = {
  name: 'schema',
  question: 'What does it cost to validate a command?',
  run: async ({ isQuick }) => {
    const signer = signerFromSeed(Buffer.alloc(32, 7))
    const text = 'The checkpoint shows what the board promised, and anybody can hold it to that. '.repeat(3)
    const fieldsOfPost = { operation: 'post', room: 'lobby', reply_to: '0123456789abcdef0123456789abcdef', text }
    const { body } = signCommand(fieldsOfPost, { signer, serviceId: service, nowSeconds: 1_790_000_000 })
    const parsed = parseStrictJson(body)
    if (!parsed.ok) throw new Error(parsed.message)
    const shaped = checkShape(parsed.value)
    if (!shaped.ok || !checkOperation(shaped.value).ok) throw new Error('the command of this bench is invalid')
    const command = shaped.value
    const ajv = new Ajv().compile({
      type: 'object',
      required: ['operation'],
      additionalProperties: false,
      properties: Object.fromEntries(Object.entries(fields).map(([name, field]) => [name, field.schema])),
    })
    const limit = looped('JSON.parse', loops, () => JSON.parse(body.toString('utf8')))
    const cases = [
      looped('parseStrictJson', loops, () => parseStrictJson(body)),
      looped('checkShape', loops, () => checkShape(parsed.value)),
      looped('checkOperation', loops, () => checkOperation(command)),
      looped('signingBytes', loops, () => signingBytes(service, command)),
      looped('all four', loops, () => {
        const found = parseStrictJson(body)
        const shape = found.ok ? checkShape(found.value) : undefined
        if (shape?.ok) return [checkOperation(shape.value), signingBytes(service, shape.value)]
      }),
      looped('plain: JSON.parse and ajv', loops, () => ajv(JSON.parse(body.toString('utf8')))),
    ]
    const rows = await compare(limit, cases, { isQuick, unit: 'commands' })
    return [{ title: `a signed post of ${body.length} bytes`, rows }]
  },
}
