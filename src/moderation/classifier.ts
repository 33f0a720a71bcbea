/**
 * An HTTP classifier that replaces the built-in rules (SCREEN_URL). It is the operator's own, so its address is trusted; its answers are
 * not.
 *
 * Request:  POST, JSON {"schema":1,"event_id","room","kind","text","is_reply"}
 * Response: 200, JSON {"score": 0 to 1, "rule"?: name of 1 to 64 characters, "words"?: at most 200 characters}, within 5 s
 *           and 64 KiB.
 */
import type { Judgement } from './advertising.ts'
import type { Screened } from './screening.ts'

const patienceMs = 5_000
const answerBytesMax = 65_536

/** Rejects with what was wrong. */
export function httpClassifier(url: string): (post: Screened) => Promise<Judgement> {
  return async ({ id, room, kind, text, isReply }) => {
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json' },
      body: JSON.stringify({ schema: 1, event_id: id, room, kind, text, is_reply: isReply }),
      redirect: 'error',
      signal: AbortSignal.timeout(patienceMs),
    })
    const answer = await boundedText(response)
    if (response.status !== 200) throw new Error(`it answered ${response.status}`)
    return parseJudgement(answer)
  }
}

async function boundedText({ body }: Response): Promise<string> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of body ?? []) {
    bytes += chunk.length
    if (bytes > answerBytesMax) throw new Error(`its answer has more than ${answerBytesMax} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

/** Its errors do not quote the text, which may be a user's post. */
export function parseJudgement(text: string): Judgement {
  let answer: unknown
  try {
    answer = JSON.parse(text)
  } catch {
    throw new Error('its answer is not JSON')
  }
  const { score, rule, words } = (answer ?? {}) as Record<string, unknown>
  if (typeof score !== 'number' || !(score >= 0 && score <= 1)) throw new Error('its score is not a number from 0 to 1')
  return { score, rule: bounded(rule, 64) || 'classifier', words: bounded(words, 200) }
}

/** Drops characters that would break a line or a display of the reason. */
function bounded(value: unknown, lengthMax: number): string {
  if (typeof value !== 'string') return ''
  return [...value.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, ' ').trim()].slice(0, lengthMax).join('')
}
