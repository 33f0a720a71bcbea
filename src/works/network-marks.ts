/**
 * Names for networks of which nothing can be read: keyed hashes under a secret of this board. Each is of one purpose, such as a
 * count of one day or one work, and says nothing beyond it: marks of two purposes cannot be compared.
 */
import { createHmac } from 'node:crypto'
import { networkOf, widerNetworkOf } from '../../actors/kernel/networks.ts'

const markBytes = 12

/** '' where the address is not known any more. */
export function networkMark(secret: Buffer, purpose: string, address: string): string {
  return address === '' ? '' : markOf(secret, purpose, networkOf(address))
}

/** Of the /48 above it; '' where nothing is above. */
export function widerNetworkMark(secret: Buffer, purpose: string, address: string): string {
  const wider = widerNetworkOf(address)
  return wider === undefined ? '' : markOf(secret, purpose, wider)
}

function markOf(secret: Buffer, purpose: string, network: string): string {
  return createHmac('sha256', secret).update(`${purpose} ${network}`).digest().toString('base64url', 0, markBytes)
}
