/**
 * Parses the text of a search: rules extract prices, networks, formats, interfaces and types as filters, and the rest are the
 * words to search for. Pure; it accepts any text and never fails.
 *
 * Rules are applied in the order below, each to what the previous ones left. If one matches twice, the first match is used.
 * Filters that the caller names explicitly take precedence over those from the text.
 */
import { expansionOf } from './expansion.ts'
import { billionthsOf, decimalOf } from './prices.ts'

export type Filters = {
  readonly type: readonly string[]
  readonly category: string
  /** Decimal dollars. */
  readonly max_price: string
  readonly output: string
  readonly network: string
  readonly protocol: string
  /** Interfaces separated by commas: any of them will do. */
  readonly door: string
}

export type Parsed = {
  /** The words to search for, in order, without stop words. */
  readonly words: readonly string[]
  readonly filters: Filters
  readonly expanded: Readonly<Record<string, readonly string[]>>
  /** The search is for a place to sign up. */
  readonly isSignUp: boolean
}

const charactersMax = 400
const wordsMax = 32

const noFilters: Filters = { type: [], category: '', max_price: '', output: '', network: '', protocol: '', door: '' }

const price =
  /(?:\b(?:under|below|less than|cheaper than|at most|max(?:imum)?|up to)|<=?)\s*(\$?)\s*(\d{1,9}(?:\.\d+)?|\.\d+)\s*(cents?|c|¢|usdc?|dollars?)?(?!\w|\.\d)(?:\s*(?:per|a|each|\/)\s*(?:call|request|query)\b)?/u
const free = /\b(?:for free|free of charge|no cost)\b|^free(?![\w-])/u
const network =
  /\b(?:on|via|over|using)\s+(base(?:[ -]sepolia)?|tempo|solana|polygon|ethereum|avalanche|monad|arbitrum)\b/u
const chain = /\b((?:eip155|solana):[a-z0-9]+)\b/u
const protocol = /(?:\b(?:via|with|using|over|accepts?|speaks?)\s+)?\b(x402|mpp(?:\/[a-z]+)?)\b/u
const output = /\b(?:returns?|returning|outputs?|in|as)\s+(json|csv|xml|html|markdown|text|pdf|image|audio|video)\b/u
const doors: readonly (readonly [rule: RegExp, door: string])[] = [
  [
    /\b(?:no (?:sign[\s-]?up|account|registration|login|api key)|without (?:an? )?(?:account|api key|key|sign[\s-]?up|registration))\b/u,
    'open,wallet,allowance',
  ],
  [/\bwith (?:an )?api key\b/u, 'key'],
  [/\b(?:no wallet|without (?:a )?wallet)\b/u, 'allowance,open'],
]
const type = /\b(?:type:(agent|service|offering|site)s?\b|(agent|service|offering|site)s?\s+(?=that\b|for\b|to\b))/u
const category = /\bcategory:([a-z-]+)/u
const signUp =
  /\b(?:sign[\s-]?up|signup|register|registration|create (?:an? )?account|open (?:an? )?account|get (?:an? )?(?:api )?key|where (?:can|do) i join|onboard)\b/u

/** Words that say nothing about a tool, including question words: "how do I", "where is there", "what's". */
const stopWords: ReadonlySet<string> = new Set(
  [
    'a an the for to of that which can i me need want find tool tools api apis service services and or with is are my please',
    'how do does what where when why there any some should could would you we',
    "how's i'd i'm what's where's",
  ].flatMap((words) => words.split(' ')),
)

/** `said`: filters named by the caller. */
export function parseQuery(text: string, said: Partial<Filters> = {}): Parsed {
  const normal = text.normalize('NFKC').toLowerCase().replace(/\s+/gu, ' ').trim()
  const rest = new Rest([...normal].slice(0, charactersMax).join(''))
  const found = readFilters(rest)
  const isSignUp = signUp.test(rest.text)
  const words = wordsOf(rest.text, isSignUp)
  return { words, filters: { ...noFilters, ...found, ...said }, expanded: expansionOf(words), isSignUp }
}

/** The text that no rule has extracted yet. */
class Rest {
  text: string

  constructor(text: string) {
    this.text = text
  }

  /** Cuts out the first match of the rule, if `accept` agrees. */
  take<Value>(rule: RegExp, accept: (match: RegExpExecArray) => Value | undefined): Value | undefined {
    const match = rule.exec(this.text)
    const value = match === null ? undefined : accept(match)
    if (match === null || value === undefined) return undefined
    this.text = `${this.text.slice(0, match.index)} ${this.text.slice(match.index + match[0].length)}`.trim()
    return value
  }
}

function readFilters(rest: Rest): Partial<Filters> {
  const found: { -readonly [Name in keyof Filters]?: Filters[Name] } = {}
  const first = (match: RegExpExecArray) => match[1]
  const priced = rest.take(price, dollars)
  const cost = priced ?? rest.take(free, () => '0')
  if (cost !== undefined) found.max_price = cost
  const on = rest.take(network, (match) => match[1]!.replace(' ', '-')) ?? rest.take(chain, first)
  if (on !== undefined) found.network = on
  const spoken = rest.take(protocol, first)
  if (spoken !== undefined) found.protocol = spoken
  const given = rest.take(output, first)
  if (given !== undefined) found.output = given
  for (const [rule, door] of doors) {
    const opened = rest.take(rule, () => door)
    if (opened !== undefined) found.door ??= opened
  }
  const kind = rest.take(type, (match) => match[1] ?? match[2])
  if (kind !== undefined) found.type = [kind]
  const named = rest.take(category, first)
  if (named !== undefined) found.category = named
  return found
}

/** A number is a price only with a dollar sign or a unit. */
function dollars([, sign, number, unit]: RegExpExecArray): string | undefined {
  if (sign === '' && unit === undefined) return undefined
  const [whole = '', places = ''] = number!.split('.')
  const billionths = billionthsOf(`${whole === '' ? '0' : whole}.${places.slice(0, 9).padEnd(1, '0')}`)
  if (billionths === undefined) return undefined
  return decimalOf(unit !== undefined && /^(c|¢)/u.test(unit) ? billionths / 100n : billionths)
}

function wordsOf(text: string, isSignUp: boolean): string[] {
  const all = split(text)
  const without = isSignUp ? meaningful(split(text.replace(signUp, ' '))) : []
  if (without.length > 0) return without
  const kept = meaningful(all)
  return kept.length > 0 ? kept : all
}

function meaningful(words: readonly string[]): string[] {
  return words.filter((word) => !stopWords.has(word.replace('’', "'")))
}

/** Words without the punctuation around them, each once. */
function split(text: string): string[] {
  const words = text.split(' ').map((word) => word.replace(/^[^\p{L}\p{N}]+|[^\p{L}\p{N}]+$/gu, ''))
  return [...new Set(words.filter((word) => word !== ''))].slice(0, wordsMax)
}
