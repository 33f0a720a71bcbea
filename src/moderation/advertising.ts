/**
 * Decides whether a post is mainly an advertisement, a link drop or a referral: a score from 0 to 1 by named rules.
 *
 * | rule | what it examines | weight |
 * |---|---|---|
 * | `only-links` | nothing but addresses, whatever Markdown text labels them | 1 |
 * | `promotion-kind` | the author calls it a promotion | 1 |
 * | `referral` | an address with a referral parameter; phrases such as "use my code" | 0.9 each |
 * | `link-drop` | addresses are three fifths of the text or more; five addresses or more | 0.7, 0.5 |
 * | `sales-words` | distinct sales phrases: one, two, three, four or more | 0.3, 0.6, 0.85, 0.95 |
 * | `shouting` | three or more exclamation marks, currency or rocket signs | 0.3 |
 *
 * Rules count as independent evidence: the score is 1 minus the product of (1 - weight). Every pattern takes time proportional to the text,
 * whatever it contains.
 */

type Judged = {
  readonly kind: string
  readonly text: string
}

export type Judgement = {
  /** 0 to 1. */
  readonly score: number
  /** Name of the rule with the greatest weight, or ''. */
  readonly rule: string
  /** What it found, for people, or ''. */
  readonly words: string
}

type Sign = { readonly rule: string; readonly weight: number; readonly words: string }

/** With a scheme or `www.`, or as people write addresses: `name.example/path`. */
const address = /\b(?:(?:https?:\/\/|www\.)[^\s<>"]{1,2000}|(?:[a-z0-9-]{1,63}\.){1,8}[a-z]{2,24}\/[^\s<>"]{0,2000})/g
/** The label of `[label](address)`, up to the address. */
const labelled = /\[[^[\]\n]{0,500}\](?=\()/g
/** The definition `[name]: address`; `named` matches its uses, `[label][name]` or `[name]`. */
const definition = /^ {0,3}\[[^[\]\n]{1,500}\]:[ \t]{0,8}<?(?:https?:\/\/|www\.|[a-z0-9-]{1,63}\.)/m
const named = /\[[^[\]\n]{0,500}\]:?/g
const referralParameter =
  /[?&](?:ref|referral|referrer|refcode|aff|aff_id|affiliate|invite|invite_code|promo|promo_code|coupon|partner)=/
const referralWords =
  /\b(?:my (?:referral|affiliate|invite|promo) (?:code|link)|use my (?:code|link)|referral (?:code|link)|affiliate link|with my (?:code|link))\b/
const salesPhrases: readonly RegExp[] = [
  /\b(?:buy|order|shop|subscribe|enroll) (?:now|today|here)\b/,
  /\blimited(?:[ -]time)? (?:offer|deal|spots|seats|stock)\b/,
  /\b(?:special|exclusive|amazing|unbeatable) (?:offer|deal|price|discount)s?\b/,
  /\b\d{1,2} ?% (?:off|discount|cheaper|cashback)/,
  /\bfree (?:trial|shipping|gift|bonus|spins)\b/,
  /\bsign up (?:now|today|here|free|for free)\b/,
  /\b(?:best|lowest|cheapest|low) prices?\b/,
  /\bmoney[ -]back\b/,
  /\bclick (?:here|below|the link)\b/,
  /\b(?:don['’]t|do not) miss\b/,
  /\b(?:act|hurry|call) (?:now|up|today)\b/,
  /\b(?:passive income|guaranteed (?:returns|profit|income)|earn (?:up to )?[$€£]?\d|get rich|double your)\b/,
  /\b(?:presale|airdrop|casino|jackpot|betting bonus)\b/,
  /\b(?:promo|discount|coupon) codes?\b/,
  /\b(?:check out|visit) (?:my|our) (?:shop|store|site|website|channel|service|product)s?\b/,
  /\b(?:dm|message|contact|whatsapp|telegram) (?:me|us) (?:for|to|now|today)\b/,
]
const salesWeights = [0, 0.3, 0.6, 0.85, 0.95] as const

/** Pure: the same post always gets the same judgement. */
export function judge({ kind, text }: Judged): Judgement {
  const lower = text.normalize('NFKC').toLowerCase()
  const addresses = lower.match(address) ?? []
  const words = lower.replace(address, ' ')
  const signs = [
    ...kindSigns(kind),
    ...linkSigns(addresses, words, lower),
    ...referralSigns(addresses, words),
    ...wordSigns(words),
  ]
  const strongest = signs.reduce<Sign>((best, sign) => (sign.weight > best.weight ? sign : best), nothing)
  const open = signs.reduce((left, { weight }) => left * (1 - weight), 1)
  return { score: 1 - open, rule: strongest.rule, words: strongest.words }
}

const nothing: Sign = { rule: '', weight: 0, words: '' }

function kindSigns(kind: string): Sign[] {
  return kind === 'promotion' ? [{ rule: 'promotion-kind', weight: 1, words: 'a post of kind promotion' }] : []
}

function linkSigns(addresses: readonly string[], words: string, lower: string): Sign[] {
  if (addresses.length === 0) return []
  const unlabelled = lower.replace(definition.test(lower) ? named : labelled, ' ').replace(address, ' ')
  if (!/[\p{L}\p{N}]/u.test(unlabelled)) return [{ rule: 'only-links', weight: 1, words: 'nothing but links' }]
  const linked = addresses.reduce((sum, { length }) => sum + length, 0)
  const said = words.replace(/\s+/g, '').length
  const signs: Sign[] = []
  if (linked >= 1.5 * said) signs.push({ rule: 'link-drop', weight: 0.7, words: 'mostly links' })
  if (addresses.length >= 5) signs.push({ rule: 'link-drop', weight: 0.5, words: `${addresses.length} links` })
  return signs
}

function referralSigns(addresses: readonly string[], words: string): Sign[] {
  const signs: Sign[] = []
  if (addresses.some((each) => referralParameter.test(each)))
    signs.push({ rule: 'referral', weight: 0.9, words: 'a link with a referral parameter' })
  if (referralWords.test(words)) signs.push({ rule: 'referral', weight: 0.9, words: 'it asks to use a referral' })
  return signs
}

function wordSigns(words: string): Sign[] {
  const signs: Sign[] = []
  const found = salesPhrases.flatMap((phrase) => phrase.exec(words)?.[0] ?? [])
  const weight = salesWeights[Math.min(found.length, salesWeights.length - 1)]!
  if (weight > 0) signs.push({ rule: 'sales-words', weight, words: `it contains “${found.slice(0, 3).join('”, “')}”` })
  const shouts = words.match(/[!🚀💰🤑💸🔥]/gu)?.length ?? 0
  if (shouts >= 3) signs.push({ rule: 'shouting', weight: 0.3, words: 'it is full of exclamation marks or loud emoji' })
  return signs
}
