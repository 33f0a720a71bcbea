/**
 * Calls at /mcp as commands of the board: a signed-in caller's are signed with the key of the sign-in, those of others are
 * sent unsigned. What is allowed, refused and limited is decided where it always is, on the way of a command.
 */
import type { Operation } from '../../actors/kernel/operation.ts'
import type { CommandPath } from '../command/ports.ts'
import { envelopeOf, type Reply, refused } from '../format/reply.ts'
import { type FieldValue, type SignableCommand, signingBytes } from '../format/signing.ts'
import type { Random } from '../platform.ts'
import type { Caller } from '../sign-in/caller.ts'
import { inputOf } from './tool-input.ts'

export type Arguments = Readonly<Record<string, unknown>>

/** Whose call it is, and how to learn that they are gone. */
export type Calling = {
  readonly caller: Caller | undefined
  readonly address: string
  readonly signal: AbortSignal
}

export type CallsOptions = {
  readonly random: Random
  readonly front: Pick<CommandPath, 'execute'>
  readonly serviceId: string
  /** Unix seconds. */
  readonly wallSeconds: () => number
}

/** The body of the board's answer; undefined: none came, and whether it took effect is unknown. */
export type Outcome = Readonly<Record<string, unknown>> | undefined

const signingNames: ReadonlySet<string> = new Set([
  'operation',
  'public_key',
  'timestamp',
  'nonce',
  'signature',
  'proof',
])

export class Calls {
  readonly #options: CallsOptions

  constructor(options: CallsOptions) {
    this.#options = options
  }

  /** Carries out an operation with arguments as a tool takes them. */
  run(operation: Operation, given: Arguments, calling: Calling): Promise<Outcome> {
    const strange = Object.keys(given).find((name) => signingNames.has(name))
    if (strange !== undefined) {
      const message = `${strange} is filled in by the board: omit it, or send a whole signed command with the tool command`
      return Promise.resolve({ ok: false, error: { code: 'unknown_field', message, field: strange } })
    }
    const input = inputOf(operation, given)
    if ('code' in input) return Promise.resolve(envelopeOf(refused(input)))
    const command = commandOf(operation, { ...given, ...(input.data === undefined ? {} : { data: input.data }) })
    const { caller } = calling
    // A token that may not read in private reads what is public.
    const signs = caller !== undefined && operation.scope !== undefined && caller.scopes.includes(operation.scope)
    if (!signs) return this.execute(command, calling)
    if (operation.kind === 'read' || typeof command.to !== 'string' || !command.to.startsWith('@'))
      return this.execute(this.#signed(command, caller), calling)
    return this.#addressed(command, caller, calling)
  }

  /** A write addressed to a handle: what is signed for the caller is the id, as every client does it. */
  async #addressed(command: Arguments, caller: Caller, calling: Calling): Promise<Outcome> {
    const found = await this.execute({ operation: 'identity.get', target: command.to }, calling)
    const { data, error } = (found ?? {}) as { data?: { identity: { id: string } }; error?: { code: string } }
    // What is no handle at all is refused as any field is.
    if (error?.code === 'invalid_field') return this.execute(this.#signed(command, caller), calling)
    if (data === undefined) return found && { ok: false, error: { ...error, field: 'to' } }
    return this.execute(this.#signed({ ...command, to: data.identity.id }, caller), calling)
  }

  /** Names a write, so that asking for it again is a retry. */
  requestId(): string {
    return this.#options.random(12).toString('base64url')
  }

  /** Sends a command as it stands. */
  execute(command: object, { caller, address, signal }: Calling): Promise<Outcome> {
    return new Promise((resolve) => {
      const door = {
        via: 'mcp',
        address,
        ...(caller === undefined ? {} : { signedIn: caller.identity }),
        onGone: (callback: () => void) => signal.addEventListener('abort', callback, { once: true }),
      }
      this.#options.front.execute(Buffer.from(JSON.stringify(command)), door, (reply: Reply | undefined) =>
        resolve(reply && envelopeOf(reply)),
      )
    })
  }

  #signed(fields: Readonly<Record<string, unknown>>, caller: Caller): object {
    const command = {
      ...fields,
      public_key: caller.publicKey,
      timestamp: this.#options.wallSeconds(),
      nonce: this.#options.random(16).toString('base64url'),
    }
    const { serviceId } = this.#options
    // Values of a wrong type are signed as they are, and refused by the check of shapes.
    const signature = isSignable(command) ? caller.sign(signingBytes(serviceId, command)) : Buffer.alloc(64)
    return { ...command, signature: signature.toString('base64url') }
  }
}

function commandOf(operation: Operation, given: Arguments): Readonly<Record<string, unknown>> {
  const { data, ...rest } = given
  // Many a client sends null for what it leaves out.
  const fields = Object.entries(rest).filter(([, value]) => value !== null)
  const isLeftOut = data === undefined || data === null
  return {
    operation: operation.name,
    ...Object.fromEntries(fields),
    ...(isLeftOut ? {} : { data: typeof data === 'string' ? data : JSON.stringify(data) }),
  }
}

function isSignable(command: Readonly<Record<string, unknown>>): command is SignableCommand & typeof command {
  return Object.values(command).every(
    (value): value is FieldValue =>
      typeof value === 'string' ||
      Number.isSafeInteger(value) ||
      (Array.isArray(value) && value.every((each) => typeof each === 'string')),
  )
}
