/**
 * Reads the limits that the operator sets in the environment variable LIMITS, one JSON object such as
 * `{"writes_per_identity_per_minute":300,"text_bytes":16384,"networks":{"192.0.2.0/24":10}}`.
 *
 * A size may be set from 1 to its ceiling, a rate or quota to 1 or more; null lifts a rate. A value that is not allowed
 * leaves the default in place; `limitsFault` names the first such value, and the board then refuses to start.
 */
type Table = Readonly<Record<string, number>>
/** The same limits, with numbers instead of literal types. */
export type Settled<Defaults extends Table> = { readonly [Name in keyof Defaults]: number }

const rateMaximum = 1_000_000_000_000
/** Networks, and identities, that LIMITS may name; beyond that, name a wider network. */
export const raisedMaximum = 1_000
/** Largest factor by which limits may be raised; beyond that, use null for no limit. */
export const factorMaximum = 1_000

const faults: string[] = []
const unused = new Set<string>()
// Read before there is a configuration: schemas contain these numbers, and are created when their modules load, in every thread.
const given = read(process.env.LIMITS ?? '')
for (const name of given.keys()) unused.add(name)

/** LIMITS as one line of JSON, the same for every order of its names. */
export const limitsText = JSON.stringify(Object.fromEntries(given), (_, value: unknown) =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
    ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
    : value,
)

function read(text: string): ReadonlyMap<string, unknown> {
  if (text === '') return new Map()
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return new Map(Object.entries(value))
  } catch {
    // Reported below: text that is not JSON, and JSON that is not an object, get the same sentence.
  }
  faults.push('LIMITS must be one JSON object, such as {"writes_per_identity_per_minute":300}')
  return new Map()
}

/** Sizes with the operator's values. `ceilings`: how far each may be raised; a size without a ceiling is fixed. */
export function settledSizes<Defaults extends Table>(
  defaults: Defaults,
  ceilings: Partial<Record<keyof Defaults, number>>,
): Settled<Defaults> {
  return settled(defaults, (name, value) => {
    const ceiling = ceilings[name]
    if (ceiling === undefined) return `${String(name)} is fixed: clients of this board rely on it`
    return isWhole(value, ceiling) ? undefined : `${String(name)} must be an integer from 1 to ${ceiling}`
  })
}

/** Rates and quotas with the operator's values; Infinity means no limit. */
export function settledRates<Defaults extends Table>(defaults: Defaults): Settled<Defaults> {
  return settled(defaults, (name, value) =>
    value === null || isWhole(value, rateMaximum)
      ? undefined
      : `${String(name)} must be an integer of at least 1, or null for no limit`,
  )
}

/**
 * The networks or identities whose rates and quotas the operator raises: `{"192.0.2.0/24":10,"10.0.0.0/8":null}` under
 * `name`. Each has the factor for its limits, or null for no limit. `canonical` returns undefined for a text that is
 * not one of `what`.
 */
export function settledFactors(
  name: string,
  canonical: (text: string) => string | undefined,
  what: string,
): ReadonlyMap<string, number> {
  const factors = new Map<string, number>()
  if (!given.has(name)) return factors
  unused.delete(name)
  const value = given.get(name)
  const entries =
    typeof value === 'object' && value !== null && !Array.isArray(value) ? Object.entries(value) : undefined
  if (entries === undefined) faults.push(`LIMITS: ${name} must be an object of ${what}, each with a number or null`)
  if (entries !== undefined && entries.length > raisedMaximum)
    faults.push(`LIMITS: ${name} may name at most ${raisedMaximum}, got ${entries.length}`)
  for (const [text, factor] of entries ?? []) {
    const key = canonical(text)
    if (key === undefined) faults.push(`LIMITS: ${name} must name ${what}, got ${JSON.stringify(text)}`)
    else if (factor !== null && !isWhole(factor, factorMaximum))
      faults.push(
        `LIMITS: ${name} must give ${text} a factor for its limits, an integer from 1 to ${factorMaximum}, or null for no limit, got ${JSON.stringify(factor)}`,
      )
    else factors.set(key, factor === null ? Number.POSITIVE_INFINITY : (factor as number))
  }
  return factors
}

function settled<Defaults extends Table>(
  defaults: Defaults,
  faultOf: (name: keyof Defaults, value: unknown) => string | undefined,
): Settled<Defaults> {
  const chosen: Record<string, number> = { ...defaults }
  for (const name of Object.keys(defaults)) {
    if (!given.has(name)) continue
    unused.delete(name)
    const value = given.get(name)
    const fault = faultOf(name, value)
    if (fault === undefined) chosen[name] = value === null ? Number.POSITIVE_INFINITY : (value as number)
    else faults.push(`LIMITS: ${fault}, got ${JSON.stringify(value)}`)
  }
  return Object.freeze(chosen) as Settled<Defaults>
}

function isWhole(value: unknown, maximum: number): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 1 && (value as number) <= maximum
}

/** The first problem with LIMITS, as a sentence, or undefined. Call it after all tables are settled. */
export function limitsFault(): string | undefined {
  const [name] = unused
  if (faults.length === 0 && name !== undefined)
    return `LIMITS has the unknown limit ${JSON.stringify(name)}: /capabilities lists all limits; PROOF_BITS sets proof_bits.`
  return faults[0] === undefined ? undefined : `${faults[0]}.`
}
