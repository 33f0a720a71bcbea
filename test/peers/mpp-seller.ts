/** A third-party seller: the server of mppx with its method `tempo`, intent `charge`, over a node of our own (tempo-node.ts). */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { loadPeer } from './npm-peers.ts'
import { Seller, type Settled } from './seller.ts'
import { pathUsd, TempoNode, tempoChain } from './tempo-node.ts'

type Listener = (request: IncomingMessage, response: ServerResponse) => Promise<{ readonly status: number }>
type Charge = (options: { readonly amount: string; readonly recipient: string }) => unknown
type Server = {
  Mppx: {
    create(options: object): { readonly tempo: { readonly charge: Charge } }
    toNodeListener(handler: unknown): Listener
  }
  tempo: { charge(options: object): unknown }
}
type Viem = { createClient(options: object): unknown; http(url: string): unknown }
type Account = { readonly address: string }
type Charging = (charge: Parameters<Charge>[0]) => Listener

const sponsorKey = `0x${'5a'.repeat(32)}`

export class MppSeller extends Seller {
  protected readonly header = 'authorization'
  readonly node: TempoNode
  /** Who pays the network's fee instead of the buyer, if anybody does. */
  readonly sponsor: Account | undefined
  readonly #charging: Charging

  private constructor(node: TempoNode, sponsor: Account | undefined, charging: Charging) {
    super()
    this.node = node
    this.sponsor = sponsor
    this.#charging = charging
  }

  /** `buyer`: an address that has money. */
  static async open({ buyer, isSponsored = false }: { buyer: string; isSponsored?: boolean }): Promise<MppSeller> {
    const node = await TempoNode.open()
    const { Mppx, tempo } = await loadPeer<Server>('mppx/server')
    const { createClient, http } = await loadPeer<Viem>('viem')
    const { tempoModerato } = await loadPeer<{ tempoModerato: object }>('viem/tempo/chains')
    const { privateKeyToAccount } = await loadPeer<{ privateKeyToAccount: (key: string) => Account }>('viem/accounts')
    const sponsor = isSponsored ? privateKeyToAccount(sponsorKey) : undefined
    const client = createClient({ chain: tempoModerato, transport: http(node.url) })
    const method = tempo.charge({
      currency: pathUsd,
      testnet: true,
      getClient: ({ chainId }: { chainId?: number }) => {
        if (chainId !== undefined && chainId !== tempoChain) throw new Error(`no client of chain ${chainId}`)
        return client
      },
      ...(sponsor === undefined ? {} : { feePayer: sponsor, feeToken: pathUsd }),
    })
    const mppx = Mppx.create({ methods: [method], realm: 'weather.example', secretKey: 'x'.repeat(32) })
    const charging: Charging = (charge) => Mppx.toNodeListener(mppx.tempo.charge(charge))
    for (const address of [buyer, ...(sponsor === undefined ? [] : [sponsor.address])]) node.give(address, 10n ** 9n)
    return new MppSeller(node, sponsor, charging).listen()
  }

  get settled(): readonly Settled[] {
    return this.node.settled
  }

  transferIn({ reference = '' }: { reference?: string }): Settled | undefined {
    return this.node.transferIn(reference)
  }

  protected async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { status } = await this.#charging({ amount: this.price, recipient: this.payTo })(request, response)
    if (status !== 402) response.setHeader('content-type', 'application/json').end('{"weather":"fair"}')
  }

  override close(): void {
    super.close()
    this.node.close()
  }
}
