/** Nothing more is published until an operator has intervened: the message says why. */
export class Halted extends Error {
  override name = 'Halted'
}

/** What to do with a directory that is behind another box's, or differs from it. */
export const rejoinAdvice =
  'Empty this directory, copy the keys directory of the leader there again if this box may lead, and start it with broadside follow.'

/** What to do with an old copy of a board that answered by quorum. */
export const staleBoardAdvice = `This board has answered by quorum, so another box has the rest. ${rejoinAdvice} Only if no other box is left, stop the board, delete the stream and replication.json, and do this again.`

/** Why a follower may not lead if its mark file records a newer signed head than its log has. */
export function refusedByMark(problem: string, file: string): string {
  return `This box may not lead: ${problem}, as ${file} records, and the stream does not have the rest. Find the box whose log has it, and let that box lead. Only if no box has it and you accept the loss, remove ${file}: then this box may lead.`
}

/** The stream has a message that cannot be read here. */
export class Foreign extends Halted {
  constructor() {
    super(
      'Another board writes to the stream, perhaps one of a newer release, or another program does. Stop it or this board. Then delete the stream and the replication.json of the board that remains, and start that board.',
    )
  }
}

/** The newest message of the stream is gone, and with it the record of who wrote it. */
export class Outdated extends Halted {
  constructor() {
    super(
      'No box has led this board for 48 hours, and the stream no longer holds a message that says which box led last. Find the box that led last: its replication.json has the highest epoch, and its journals are the longest. Stop the others and empty their directories. On that box, delete the stream and replication.json, then start it with broadside serve.',
    )
  }
}

/** Another board writes to the stream: this one must not answer anything more, whatever its writes are waiting for. */
export class Deposed extends Halted {
  override name = 'Deposed'

  constructor() {
    super(
      'Another box leads this board: it took over after this one had handed over the lead, or could not be reached. This box has acknowledged nothing since. Start it with broadside follow (a box that may lead: broadside follow --may-lead), which makes it a follower of that box, or stop it for good.',
    )
  }
}
