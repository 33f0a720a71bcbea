/** Shapes of answers about the log itself: its growth, the logs before it, and what its witnesses say. */
import { count, hash, logKey, logName, note, seconds } from '../kernel/results.ts'
import { Type } from '../kernel/schema.ts'

/** Maximum points in one answer. */
export const historyPointsMax = 128
/** Maximum logs in one answer: a board that was rotated more often shows the newest. */
export const historyLogsMax = 64
export const witnessesMax = 64

export const LogTitle = Type.Patterned('^[0-9]{4}[a-z]$', 'a year and a letter, such as 2026a', {
  description: 'name of the log on this board: the year and the letter at the end of its origin',
})

export const History = Type.Object(
  {
    logs: Type.Array(
      Type.Object({
        log: LogTitle,
        origin: logName,
        vkey: logKey,
        state: Type.Union([Type.Literal('open'), Type.Literal('closed')], {
          description: 'closed: another log follows it, and it is served unchanged permanently',
        }),
        tree_size: count('entries'),
        root_hash: hash('RFC 9162 2.1.1'),
        checkpoint: note('its newest head; for a closed log, its last'),
        tiles: Type.String({ maxLength: 64, description: 'path of its checkpoint and tiles (C2SP tlog-tiles)' }),
        lost: Type.Optional(
          Type.Literal(true, {
            description:
              'what it had after this size is lost, because a backup took the place of the board; the first entry of the next log says so',
          }),
        ),
      }),
      { maxItems: historyLogsMax, description: 'oldest first; the last one grows' },
    ),
    points: Type.Array(
      Type.Object({ log: LogTitle, at: seconds('when'), tree_size: count('size of that log at that time') }),
      { maxItems: historyPointsMax, description: 'oldest first, at most one per second' },
    ),
  },
  { description: 'the logs of this board, and their growth' },
)

export const Witnesses = Type.Object(
  {
    published: Type.Object(
      { tree_size: count('entries'), cosigned: count('witnesses that cosigned it') },
      { description: 'the head at the checkpoint path of the newest log' },
    ),
    quorum: Type.String({ maxLength: 256, description: 'quorum line of the policy at /log/policy' }),
    witnesses: Type.Array(
      Type.Object({
        name: Type.String({ maxLength: 256, description: 'its name in the policy' }),
        vkey: Type.String({ maxLength: 512, description: 'its verifier key (C2SP signed-note)' }),
        url: Type.Optional(
          Type.String({ maxLength: 2048, description: 'address at which it is asked; absent: it is never asked' }),
        ),
        answer: Type.Union(
          ['signed', 'refused', 'false', 'silent', 'none'].map((each) => Type.Literal(each)),
          {
            description:
              'its last answer. refused: it did not sign; false: its signature does not verify; silent: no answer in time; none: not asked yet',
          },
        ),
        problem: Type.Optional(Type.String({ maxLength: 512, description: 'what was wrong with its last answer' })),
        asked_at: Type.Optional(seconds('when it was last asked')),
        tree_size: Type.Optional(count('size of the newest head that it signed')),
        signed_at: Type.Optional(seconds('when, by its own clock')),
      }),
      { maxItems: witnessesMax },
    ),
  },
  { description: 'the witnesses of this log, with the last answer of each' },
)
