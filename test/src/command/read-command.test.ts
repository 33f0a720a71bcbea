/** From bytes to a command: what is refused before it is parsed, and how it is reported. */
import { expect, test } from 'vitest'
import { sizes } from '../../../actors/kernel/limits.ts'
import { readCommand } from '../../../src/command/check.ts'

function said(body: string): string {
  const read = readCommand(Buffer.from(body))
  if (read.ok) return 'ok'
  const { code, field = '', message } = read.fault()
  return `${code} ${field}: ${message}`
}

const list = (count: number) => JSON.stringify(Array.from({ length: count }, () => 'f'.repeat(64)))

test('a command may have half a megabyte, and one that uploads a file as much as a body', () => {
  const wide = (operation: string, bytes: number) => {
    const command = { operation, data: '' }
    return JSON.stringify({ ...command, data: 'A'.repeat(bytes - JSON.stringify(command).length) })
  }
  expect(said(wide('post', sizes.command_bytes))).toBe('ok')
  expect(said(wide('post', sizes.command_bytes + 1))).toBe(
    `too_large : a command other than blob.put may have ${sizes.command_bytes} bytes, and this has ${sizes.command_bytes + 1}`,
  )
  expect(said(wide('blob.put', sizes.body_bytes))).toBe('ok')
  expect(said(`{"data":"${'A'.repeat(sizes.command_bytes)}"}`)).toMatch(/^too_large/)
  // Whichever of two operations a reader takes: only one is allowed.
  const two = `{"operation":"blob.put","data":"${'A'.repeat(sizes.command_bytes)}","operation":"post"}`
  expect(said(two)).toMatch(/^invalid_json : .*key "operation" is given twice/)
})

test('a list is parsed no further than any list of a command may go, and the field is named', () => {
  expect(said(`{"operation":"room.create","members":${list(200)}}`)).toBe('ok')
  const tooLong =
    'invalid_field members: members must be an array of at most 100 identity ids of 64 lowercase hex characters; more than 200 items were sent'
  expect(said(`{"operation":"room.create","members":${list(201)}}`)).toBe(tooLong)
  // What follows is not parsed.
  expect(said(`{"operation":"room.create","members":${list(201).slice(0, -1)},,,,`)).toBe(tooLong)
  expect(said(`{"nothing":${list(201)}}`)).toMatch(/^invalid_json : .*an array has more than 200 items at byte \d+$/)
  expect(said(list(201))).toMatch(/^invalid_json : a command must be one JSON object, but the body is an array$/)
})

test('a body with more structure than any command has is refused', () => {
  const members = (count: number) => `{${Array.from({ length: count }, (_, n) => `"k${n}":1`).join()}}`
  expect(said(members(1_000))).toMatch(/^unknown_field k0/)
  expect(said(members(3_000))).toMatch(/^invalid_json : .*more than 4096 of \{ \[ : , at byte \d+$/)
  expect(said(`{"data":{"rows":[${'{},'.repeat(2_000)}{}]}}`)).toMatch(/^invalid_field data: data must be a string/)
})
