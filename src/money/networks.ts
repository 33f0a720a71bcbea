/** Networks, and the tokens on them that we pay with: dollars with six decimals, so that an atomic unit is a millionth. */

type Token = {
  readonly address: string
  /** EIP-712 domain: it differs by network, and must be exact. */
  readonly name: string
  readonly version: string
}

/** USDC by the CAIP-2 name of its network. */
export const usdc: Readonly<Record<string, Token>> = {
  'eip155:1': { address: '0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48', name: 'USD Coin', version: '2' },
  'eip155:143': { address: '0x754704Bc059F8C67012fEd69BC8A327a5aafb603', name: 'USDC', version: '2' },
  'eip155:8453': { address: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913', name: 'USD Coin', version: '2' },
  'eip155:43114': { address: '0xB97EF9Ef8734C71904D8002F8b6Bc66Dd9c48a6E', name: 'USD Coin', version: '2' },
  'eip155:84532': { address: '0x036CbD53842c5426634e7929541eC2318f3dCF7e', name: 'USDC', version: '2' },
}

/** Names used by x402 version 1, and by people. */
const chainIds: Readonly<Record<string, number>> = {
  ethereum: 1,
  sepolia: 11155111,
  abstract: 2741,
  'abstract-testnet': 11124,
  base: 8453,
  'base-sepolia': 84532,
  avalanche: 43114,
  'avalanche-fuji': 43113,
  iotex: 4689,
  sei: 1329,
  'sei-testnet': 1328,
  polygon: 137,
  'polygon-amoy': 80002,
  peaq: 3338,
  story: 1514,
  educhain: 41923,
  'skale-base-sepolia': 324705682,
  megaeth: 4326,
  monad: 143,
  stable: 988,
  'stable-testnet': 2201,
  celo: 42220,
  flare: 14,
  tempo: 4217,
}

/** The CAIP-2 name of a network, given any of its names. */
export function caip2(network: string): string {
  const id = Object.hasOwn(chainIds, network) ? chainIds[network] : undefined
  return id === undefined ? network : `eip155:${id}`
}

/** Its common name. */
export function friendlyName(network: string): string {
  return Object.entries(chainIds).find(([, id]) => network === `eip155:${id}`)?.[0] ?? network
}

/** Chain id of an EIP-155 network; undefined for others. */
export function chainIdOf(network: string): number | undefined {
  const id = /^eip155:([1-9]\d{0,14})$/.exec(network)?.[1]
  return id === undefined ? undefined : Number(id)
}

/** TIP-20 dollars on Tempo, by chain id, in lowercase. */
export const tempoTokens: Readonly<Record<number, readonly string[]>> = {
  4217: ['0x20c000000000000000000000b9537d11c60e8b50', '0x20c0000000000000000000000000000000000000'],
  42431: ['0x20c0000000000000000000000000000000000000'],
}
