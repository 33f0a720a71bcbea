/** Names of payment networks: what people call one, and its CAIP-2 name, are the same network. */
const byChain: Readonly<Record<string, string>> = {
  'eip155:1': 'ethereum',
  'eip155:137': 'polygon',
  'eip155:143': 'monad',
  'eip155:8453': 'base',
  'eip155:84532': 'base-sepolia',
  'eip155:42161': 'arbitrum',
  'eip155:43114': 'avalanche',
  'eip155:4217': 'tempo',
  'solana:5eykt4usfv8p8njdtrepy1vzqkqzkvdp': 'solana',
  'solana:etwtrabzayq6imfeykouru166vu2xqa1': 'solana-devnet',
}

/** The everyday name where there is one, in lower case. */
export function networkName(name: string): string {
  const plain = name.toLowerCase()
  return byChain[plain] ?? plain
}
