/**
 * Maps query words to categories: "btc" implies crypto. The category is searched for in addition to the words, with less
 * weight. Also maps the category names of other lists to ours.
 */
import { stem } from '../search/stem.ts'

const terms: readonly (readonly [words: string, categories: string])[] = [
  ['scrape scraper crawl crawler extract html page', 'scraping'],
  ['fetch url website', 'scraping web'],
  ['browser headless screenshot', 'browser scraping'],
  ['image photo picture logo draw diffusion', 'images media'],
  ['video clip youtube', 'video media'],
  ['audio music sound', 'audio media'],
  ['speech voice tts transcribe', 'audio ai'],
  ['price token coin btc bitcoin eth dex defi', 'crypto'],
  ['wallet onchain contract nft chain', 'blockchain crypto'],
  ['stock equity forex fx earnings sec', 'finance'],
  ['invoice bank iban tax', 'finance data'],
  ['company kyb enrich lead', 'data marketing'],
  ['sanctions aml kyc', 'security data'],
  ['cve vuln malware phishing', 'security'],
  ['email smtp inbox', 'email communication'],
  ['sms call phone', 'communication'],
  ['tweet twitter x reddit linkedin instagram tiktok', 'social'],
  ['search serp google bing', 'search'],
  ['news headline rss', 'news'],
  ['weather forecast temperature', 'weather'],
  ['map geo geocode address zip', 'location'],
  ['flight hotel airport', 'travel'],
  ['translate language', 'translation'],
  ['llm gpt claude chat summarize embed', 'ai'],
  ['agent mcp a2a', 'agents'],
  ['code github repo lint', 'code'],
  ['sql postgres mysql mongo', 'database'],
  ['pdf document ocr', 'data'],
  ['file upload s3 ipfs', 'storage'],
  ['gpu vm sandbox', 'compute'],
  ['uptime log metric', 'monitoring'],
  ['product amazon shop', 'shopping'],
  ['sport nba nfl odds', 'sports'],
  ['game steam', 'gaming'],
  ['wiki paper arxiv', 'knowledge'],
]

const categoriesPerTerm = 3

const byStem = new Map<string, readonly string[]>()
for (const [words, categories] of terms)
  for (const word of words.split(' ')) byStem.set(stem(word), categories.split(' ').slice(0, categoriesPerTerm))

/** Which terms of a query were expanded, and to what. */
export function expansionOf(words: readonly string[]): Readonly<Record<string, readonly string[]>> {
  const found: [string, readonly string[]][] = []
  for (const word of words) {
    const categories = byStem.get(stem(word))
    if (categories !== undefined) found.push([word, categories])
  }
  return Object.fromEntries(found)
}

/** Categories of other lists -> ours; the first is the category, the rest become tags. */
const foreign: Readonly<Record<string, readonly string[]>> = {
  'search-data-extraction': ['search', 'scraping'],
  'browser-automation': ['browser'],
  'finance-fintech': ['finance'],
  'cloud-platforms': ['compute'],
  databases: ['database'],
  'knowledge-memory': ['knowledge'],
  'location-services': ['location'],
  'version-control': ['code'],
  'developer-tools': ['code'],
  'coding-agents': ['code', 'agents'],
  'code-execution': ['code', 'compute'],
  'command-line': ['code'],
  'translation-services': ['translation'],
  'travel-transportation': ['travel'],
  'art-and-culture': ['media'],
  'data-platforms': ['data'],
  'customer-data-platforms': ['data', 'marketing'],
  'data-science-tools': ['data'],
  'file-systems': ['storage'],
  'ai-agents': ['agents', 'ai'],
  analytics: ['data'],
  aggregators: ['agents'],
  facilitators: ['facilitators', 'crypto'],
  uncategorized: ['other'],
  'other-tools-and-integrations': ['other'],
}

/** Our names for the category of another list; empty if there is none. */
export function categoriesOf(name: string): readonly string[] {
  const slug = name
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-+|-+$/g, '')
    .slice(0, 64)
  if (slug === '') return []
  return foreign[slug] ?? [slug]
}
