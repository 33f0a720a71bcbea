/** Types for the part of oidc-provider 9 used here; the package has no types of its own. */
declare module 'oidc-provider' {
  import type { IncomingMessage, ServerResponse } from 'node:http'

  export type Client = {
    readonly clientId: string
    readonly clientName?: string
    readonly clientUri?: string
    readonly redirectUris?: readonly string[]
    readonly applicationType?: string
  }
  export type Interaction = {
    readonly uid: string
    readonly params: Readonly<Record<string, string | undefined>>
    readonly returnTo: string
    readonly exp: number
  }
  export type Context = {
    readonly oidc: {
      /** Name of the endpoint. */
      readonly route: string
      /** Whether the redirect URI was checked, either when the stored request was made or now for this one. */
      readonly redirectUriCheckPerformed?: boolean
      readonly result?: { readonly login?: object; readonly consent?: { readonly grantId?: string } }
      readonly client?: Client
      readonly params: Readonly<Record<string, string | undefined>>
    }
    body: unknown
    type: string
  }
  export class Check {
    constructor(reason: string, description: string, check: (ctx: Context) => boolean)
    static readonly REQUEST_PROMPT: true
    static readonly NO_NEED_TO_PROMPT: false
  }
  type Prompt = { readonly checks: { add(check: Check): void; clear(): void } }
  export const interactionPolicy: {
    readonly Check: typeof Check
    base(): { get(name: string): Prompt | undefined }
  }
  export const errors: {
    readonly InvalidTarget: new (message?: string) => Error
    readonly InvalidRedirectUri: new () => Error
    readonly InvalidClientMetadata: new (description: string) => Error
    readonly TemporarilyUnavailable: new (description: string) => Error
    readonly InvalidGrant: new (message?: string) => Error
    readonly InvalidScope: new (description: string) => Error
  }

  type GrantModel = new (of: {
    accountId: string
    clientId: string
  }) => {
    addResourceScope(resource: string, scope: string): void
    save(): Promise<string>
  }
  export default class Provider {
    constructor(issuer: string, configuration: object)
    proxy: boolean
    readonly Grant: GrantModel
    readonly RefreshToken: { readonly prototype: { readonly grantId: string; generateTokenId(): string } }
    readonly Client: {
      find(id: string): Promise<Client | undefined>
      /** Whether a client that registers with this metadata is given a secret. */
      needsSecret(metadata: object): boolean
    }
    /** Wraps every request. `oidc` is set after `next` if the path belongs to the library. */
    use(
      middleware: (
        ctx: Omit<Context, 'oidc'> & {
          query: object & { response_mode?: unknown; scope?: unknown; client_id?: unknown }
          status: number
          readonly path: string
          readonly response: { get(name: string): string; remove(name: string): void }
          readonly oidc?: Context['oidc']
        },
        next: () => Promise<void>,
      ) => Promise<void>,
    ): this
    callback(): (req: IncomingMessage, res: ServerResponse) => void
    interactionDetails(req: IncomingMessage, res: ServerResponse): Promise<Interaction>
    interactionResult(req: IncomingMessage, res: ServerResponse, result: object, options?: object): Promise<string>
    on(event: 'grant.revoked', listener: (ctx: Context, grantId: string) => void): this
    on(event: 'server_error', listener: (ctx: Context, error: Error) => void): this
  }
}
