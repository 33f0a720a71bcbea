/**
 * Whether a host names this machine itself. `hostname`: as URLs have it, without a port and with brackets around IPv6 (WHATWG URL,
 * "host serializing").
 */
export function isLoopback(hostname: string): boolean {
  return /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/.test(hostname)
}
