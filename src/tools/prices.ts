/**
 * Prices: decimal texts of dollars, compared as integer billionths of a dollar, so that nothing is lost to binary fractions.
 * Also the names of payment networks.
 */

const perDollar = 1_000_000_000n

/** Billionths of a dollar of a plain decimal with at most nine places, or undefined. */
export function billionthsOf(price: string): bigint | undefined {
  const parts = /^(\d{1,9})?(?:\.(\d{1,9}))?$/.exec(price)
  if (parts === null || (parts[1] === undefined && parts[2] === undefined)) return undefined
  return BigInt(parts[1] ?? '0') * perDollar + BigInt((parts[2] ?? '').padEnd(9, '0'))
}

/** The shortest plain decimal. */
export function decimalOf(billionths: bigint): string {
  const whole = billionths / perDollar
  const places = (billionths % perDollar).toString().padStart(9, '0').replace(/0+$/, '')
  return places === '' ? whole.toString() : `${whole}.${places}`
}

/** Converts a number from a list (`1e-7` too) to a plain decimal with at most nine places, rounded up; undefined if it is not a price. */
export function plainPrice(given: string | number): string | undefined {
  const parts = /^(\d{1,12})?(?:\.(\d{1,30}))?(?:e([+-]?\d{1,2}))?$/i.exec(String(given).trim())
  if (parts === null || (parts[1] === undefined && parts[2] === undefined)) return undefined
  const places = parts[2] ?? ''
  const shift = 9 + Number(parts[3] ?? 0) - places.length
  const digits = BigInt((parts[1] ?? '0') + places)
  const billionths =
    shift >= 0 ? digits * 10n ** BigInt(shift) : (digits + 10n ** BigInt(-shift) - 1n) / 10n ** BigInt(-shift)
  return billionths >= 1_000_000n * perDollar ? undefined : decimalOf(billionths)
}

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

/**
 * Normalizes the name of a payment network: its common name and its CAIP-2 name mean the same network. Returns the common name
 * if there is one, in lower case.
 */
export function networkName(name: string): string {
  const plain = name.toLowerCase()
  return byChain[plain] ?? plain
}
