/** Faults to put into the code, each in one place, named by what they break. Each of them has to be found. */

export type Mutation = {
  readonly name: string
  /** Of a run that finds it soon, where others do not. */
  readonly seed?: string
  readonly file: string
  /** Occurs in the file exactly once. */
  readonly from: string
  readonly to: string
}

const journal = 'storage/journal.ts'
const recovery = 'storage/recovery.ts'
const shard = 'actors/shard.ts'
const log = 'actors/log/log.ts'
const write = 'actors/records/write.ts'
const room = 'actors/rooms/room.ts'
const market = 'actors/works/market-decide.ts'

export const mutations: readonly Mutation[] = [
  {
    name: 'a batch is not synced',
    file: journal,
    from: '    try {\n      active.file.sync()\n    } catch (error) {\n      this.#afterFailure(error)\n      throw error\n    }\n    this.#add(active, frames)',
    to: '    this.#add(active, frames)',
  },
  {
    name: 'a batch synced in the background is not synced',
    file: journal,
    from: '    active.file.syncLater((failed) => {\n      this.#isAppending = false',
    to: '    const soon = (done: (failed?: Error) => void) => queueMicrotask(() => done())\n    soon((failed) => {\n      this.#isAppending = false',
  },
  {
    name: 'the name of a new segment is not synced',
    file: journal,
    from: '      file.sync()\n      this.#disk.syncDirectory(this.#directory)',
    to: '      file.sync()',
  },
  {
    name: 'the header of a new segment is not synced',
    file: journal,
    from: '      file.sync()\n      this.#disk.syncDirectory(this.#directory)',
    to: '      this.#disk.syncDirectory(this.#directory)',
  },
  {
    name: 'a footer is not synced',
    file: journal,
    from: 'live.nextSeq, active.seed), live.end)\n    file.sync()',
    to: 'live.nextSeq, active.seed), live.end)',
  },
  {
    name: 'the frames of a batch are reordered',
    file: journal,
    from: '    for (const frame of frames) {\n      at = encodeFrame(',
    to: '    for (const frame of frames.toReversed()) {\n      at = encodeFrame(',
  },
  {
    name: 'a start does not sync the frames it recovered',
    file: recovery,
    from: '    confirm(file, walk)\n    recovery.disk.syncDirectory',
    to: '    recovery.disk.syncDirectory',
  },
  {
    name: 'a torn tail stays in the journal',
    file: recovery,
    from: '  file.truncate(end)\n}',
    to: '}',
  },
  {
    name: 'with several shards a head is published before its sync',
    file: log,
    from: 'if (shards.length === 1 && syncsFirst !== true) journal.appendUnsynced',
    to: 'if (shards.length > 0 && syncsFirst !== true) journal.appendUnsynced',
  },
  {
    name: 'a public write is answered before the log has it',
    file: shard,
    from: 'if (last === 0 || decision.isAnsweredEarly === true) answers',
    to: 'if (last >= 0 || decision.isAnsweredEarly === true) answers',
  },
  {
    name: 'a leaf is counted wrong in receipts',
    file: shard,
    from: '      change++\n      leaf += leaves',
    to: '      change++\n      leaf += 1',
  },
  {
    name: 'the log covers a frame twice after a start',
    file: log,
    from: 'covered: frame.ranges.map(({ last }) => last) }',
    to: 'covered: frame.ranges.map(({ last }) => Math.max(0, last - 1)) }',
  },
  {
    name: 'the feed skips a frame of the log',
    file: 'actors/feed.ts',
    from: '      this.#next = frame.seq + 1\n',
    to: '      this.#next = frame.seq + (frame.seq % 50 === 0 ? 2 : 1)\n',
  },
  {
    name: 'a retry is forgotten',
    file: write,
    from: '    const place = this.#place(letter)\n',
    to: '    const place: number | undefined = undefined as number | undefined\n',
  },
  {
    name: 'a retry of an act is forgotten at a restart',
    file: write,
    from: 'if (!use.isEvent) this.#commands.set(use.id',
    to: 'if (!use.isEvent && use.nonce === "") this.#commands.set(use.id',
  },
  {
    name: 'a nonce can be reused',
    file: write,
    from: "    if (this.#used('nonce', letter, now) !== undefined)\n",
    to: "    if (letter.nonce === '')\n",
  },
  {
    name: 'nonces are forgotten at a restart',
    file: write,
    from: 'this.remember({ to: record.room, author, nonce, requestId,',
    to: "this.remember({ to: record.room, author, nonce: '', requestId,",
  },
  {
    name: 'request ids are forgotten at a restart',
    file: write,
    from: 'this.remember({ to: record.room, author, nonce, requestId,',
    to: "this.remember({ to: record.room, author, nonce, requestId: '',",
  },
  {
    name: 'a request id accepts other content',
    file: write,
    from: '    if (repeated !== undefined) return repeated\n',
    to: '',
  },
  {
    name: 'a request id is answered regardless of the content',
    file: write,
    from: '  return files[0] === files[1] && contentOf(',
    to: '  return files[0] === files[1] || contentOf(',
  },
  {
    name: 'a former member still has the room in their own list',
    file: 'actors/records/board.ts',
    from: 'if (room.members.delete(identity) && !isIn(room, identity)) this.#leave(room, identity)',
    to: 'room.members.delete(identity)',
  },
  {
    name: 'a member who joins later does not have the room in their own list',
    file: 'actors/records/board.ts',
    from: '    if (!isIn(room, identity)) this.#enter(room, identity)\n    room.members.add(identity)',
    to: '    room.members.add(identity)',
  },
  {
    name: 'a list of own rooms has only those whose members changed since the last start',
    file: 'actors/records/board.ts',
    from: '  for (const room of packed.rooms) board.add(unpackRoom(room, board.roomList.length, columns))',
    to: '  for (const room of packed.rooms) {\n    const made = unpackRoom(room, board.roomList.length, columns)\n    board.roomList.push(made)\n    board.rooms.set(made.name, made)\n  }',
  },
  {
    name: 'a suspended identity may write',
    file: write,
    from: "    if (isSuspended) return refuse('suspended'",
    to: "    if (isSuspended && letter.nonce === '') return refuse('suspended'",
  },
  {
    name: 'an old key may write',
    file: write,
    from: '    if (letter.rotated)\n',
    to: "    if (letter.rotated && letter.nonce === '')\n",
  },
  {
    name: 'a delegation that has ended still acts',
    file: write,
    from: 'if (letter.delegated !== undefined && (letter.delegated.isOver || now >= letter.delegated.expires))',
    to: "if (letter.delegated?.isOver === true && letter.nonce === '')",
  },
  {
    name: 'a delegate acts in public before its delegation is published',
    file: shard,
    from: 'if (write.delegated?.isPublished === false && isSeen) {',
    to: "if (write.delegated?.isPublished === false && isSeen && write.nonce === '') {",
  },
  {
    name: 'anyone posts into a private room',
    file: room,
    from: 'if (room !== undefined && !mayWrite(room, letter.author) && !isOfBoard(letter)) {',
    to: 'if (room !== undefined && !mayWrite(room, letter.author) && isOfBoard(letter)) {',
  },
  {
    name: 'anyone reads a private room',
    file: 'src/reads/read.ts',
    from: "!mayWrite(room, reader)) return privateRoom('room')",
    to: "!mayWrite(room, reader) && reader === '') return privateRoom('room')",
  },
  {
    name: 'anyone adds members',
    file: 'actors/rooms/policy.ts',
    from: "operator && room.visibility === 'public' : room.owner === author",
    to: "operator && room.visibility === 'public' : room.owner !== ''",
  },
  {
    name: 'the name of a private room is in the public order',
    file: room,
    from: "return accept([{ record, key: letter.id, isPublic: visibility === 'public' }], {",
    to: 'return accept([{ record, key: letter.id, isPublic: true }], {',
  },
  {
    name: 'a locked thread takes replies',
    file: room,
    from: "  if (letter.op !== 'post' || isOfBoard(letter) || !state.threadFlags",
    to: "  if (letter.op === 'post' || isOfBoard(letter) || !state.threadFlags",
  },
  {
    name: 'an author votes for themselves',
    file: 'actors/posts/decide.ts',
    from: '  if (author === letter.author) return refuse(',
    to: '  if (author === letter.author && value < -1) return refuse(',
  },
  {
    name: 'a balance is not checked',
    file: 'actors/works/market/rows.ts',
    from: '  if (cost <= available) return undefined',
    to: '  if (cost <= available + 10_000_000) return undefined',
  },
  {
    name: 'anyone creates credits',
    file: 'actors/works/market/credits.ts',
    from: "  if (!letter.operator) return refuse('forbidden', 'only an operator of this board can create credits')\n",
    to: '',
  },
  {
    name: 'a credit is lost in transit',
    file: 'actors/works/market/ledger.ts',
    from: '      this.#of(ledger, credit).posted += amount\n    } else {',
    to: '      this.#of(ledger, credit).posted += Math.max(1, amount - 1)\n    } else {',
  },
  {
    name: 'anyone accepts a result',
    file: market,
    from: '      return author === work.reviewer || author === work.requester\n',
    to: "      return author !== ''\n",
  },
  {
    name: 'anyone rejects a result',
    file: market,
    from: '      return author === work.reviewer\n',
    to: "      return author !== ''\n",
  },
  {
    name: 'an old claim still counts',
    file: market,
    from: '      if (fence !== work.fence) return',
    to: '      if (fence < work.fence) return',
  },
  {
    name: 'a reply from the market is ignored',
    file: 'actors/works/delivery.ts',
    from: '    if (answer.ok) return this.#go(line, answer)\n',
    to: '    if (answer.ok) return this.#drop(line)\n',
  },
  {
    name: 'the mark of the log is not written',
    file: 'src/log/mark.ts',
    from: '    const text = this.#wanted\n    if (text === this.#kept) return',
    to: "    const text = this.#wanted\n    if (text !== '') return",
  },
  {
    name: 'an older log is accepted as complete',
    file: 'src/log/mark.ts',
    from: '  if (size > log.size)\n    throw new RolledBack(',
    to: '  if (size > log.size + 1_000_000)\n    throw new RolledBack(',
  },
  {
    name: 'a start cuts what the log proves',
    file: recovery,
    from: 'cutTail(recovery, file, walk, recovery.knownDurable(journalId))',
    to: "cutTail(recovery, file, walk, { seq: 0, by: '' })",
  },
  {
    name: 'one damaged record ends an export',
    file: 'src/export/chunks.ts',
    from: '    if (!(error instanceof Damage)) throw error\n    return toUtf8(unreadableLine',
    to: '    if (error instanceof Damage) throw error\n    return toUtf8(unreadableLine',
  },
  {
    name: 'one damaged record ends a tail',
    file: 'src/follow/live.ts',
    from: '  return listed(context, slot, () => versionView(',
    to: '  return ((_context: ReadContext, _slot: number, show: () => EventView) => show())(context, slot, () => versionView(',
  },
  {
    name: 'a cursor begins one place too late',
    file: 'src/follow/rows.ts',
    from: '  const first = changes.after(from.next - 1)',
    to: '  const first = changes.after(from.next)',
  },
  {
    name: 'a cursor begins one update too early',
    file: 'src/follow/rows.ts',
    from: 'if (next === from.next && taken <= from.taken) continue',
    to: 'if (next === from.next && taken < from.taken) continue',
  },
  {
    name: 'a shard answers before the stream has it',
    file: shard,
    from: '    if (then === undefined || this.#acknowledged < this.#options.journal.nextSeq - 1) return',
    to: '    if (then === undefined) return',
  },
  {
    name: 'the log announces a frame before the stream has it',
    file: 'src/workers/log-run.ts',
    from: '    if (seq <= this.#acknowledged) say()\n    else',
    to: '    if (seq > 0) say()\n    else',
  },
  {
    name: 'a missing acknowledgment counts as received',
    file: 'src/replication/publish.ts',
    from: "    if ('seq' in done && done.seq === after + 1) return",
    to: "    if (!('seq' in done) || done.seq === after + 1) return",
  },
  {
    name: 'a message of another board is accepted as this board’s',
    file: 'src/replication/publish.ts',
    from: '    if (there !== undefined && isSamePart(there, part)) return',
    to: '    if (there !== undefined) return',
  },
  {
    name: 'a deposed board does not notice',
    file: 'src/replication/pump.ts',
    from: '    if (newest.leader !== leader) throw new Deposed()\n',
    to: '',
  },
  {
    name: 'a follower leads without the newest messages of the stream',
    file: 'src/replication/lead.ts',
    from: '      await this.#takeThrough(lastSeq, header)\n      this.#checkPlaces(header)\n      this.#checkLogKey()',
    to: '      this.#checkLogKey()',
  },
  {
    name: 'a deposed board keeps frames that the stream lacks',
    file: 'src/replication/stand-down.ts',
    from: '    const last = lasts[index]!\n',
    to: '    const last = lasts[index]! + 1\n',
  },
  {
    name: 'pending deliveries of a webhook count as sent',
    file: 'src/webhooks/subscription-run.ts',
    from: '      if (kind !== headKind) marks[source] = signal.position\n',
    to: '',
  },
  {
    name: 'after a restart, deliveries skip the backlog',
    file: 'src/webhooks/engine.ts',
    from: 'Math.min(kept?.[source] ?? next, next)',
    to: 'Math.max(kept?.[source] ?? next, next)',
  },
  {
    name: 'deliveries go to a webhook that has ended',
    file: 'src/webhooks/plans.ts',
    from: '    else if (answer.ok) void hooks.changed(signer.id)\n',
    to: '',
  },
  {
    name: 'old events are not found by their ids',
    file: 'actors/records/event-index.ts',
    from: '(this.#old?.find(id, since) ?? none)',
    to: 'none',
  },
  {
    name: 'an old event returns its neighbor’s row',
    file: 'storage/shelved-rows.ts',
    from: '    return (row % this.#layout.rowsPerBlock) * this.#words\n',
    to: '    return ((row ^ 1) % this.#layout.rowsPerBlock) * this.#words\n',
  },
  {
    name: 'a follower answers a write before it shows it',
    file: 'src/replication/follower-front.ts',
    from: '    if (this.#ends !== undefined && isReached(ends, this.#ends)) return then()',
    to: '    if (this.#ends !== undefined) return then()',
  },
  {
    name: 'a follower that is behind shows what is private',
    file: 'src/replication/follower-front.ts',
    from: '    if (this.behindMs <= privateWithinMs) return undefined',
    to: '    if (this.behindMs < Number.POSITIVE_INFINITY) return undefined',
  },
  {
    name: 'a follower shows a batch before its log covers it',
    file: 'src/workers/take-frames.ts',
    from: '    ask(log, shares?.at(-1), (last) => (last.ok ? give(taken(found, last)) : give(last)))',
    to: '    ask(log, undefined, (last) => (last.ok ? give(taken(found, last)) : give(last)))',
  },
  {
    name: 'a write is answered before any follower has it',
    file: 'src/replication/acknowledgments.ts',
    from: '    if (!this.#options.waitsForCopy) this.#report(this.#stream)\n',
    to: '    if (this.#isStarted || !this.#isStarted) this.#report(this.#stream)\n',
  },
  {
    name: 'a follower acknowledges frames before it writes them',
    file: 'src/replication/follower.ts',
    from: '    this.#places = await this.#options.take(shares)\n',
    to: '    const lasts = shares.map(({ last }) => last)\n    this.#stream?.reportCopied({ log: lasts.at(-1)!, shards: lasts.slice(0, -1) })\n    this.#places = await this.#options.take(shares)\n',
  },
  {
    name: 'a repeated command calls its tool again',
    file: 'src/tool-calls/service.ts',
    from: '    if (isDuplicate) return this.#giveKept(id, identity, facts, undefined, [give])\n',
    to: '',
  },
  {
    name: 'a call interrupted by a kill is repeated',
    file: 'src/tool-calls/open-payments.ts',
    from: 'this.#settle(relay.giveUp(call, false), call)',
    to: 'this.#settle(relay.make(call), call)',
  },
  {
    name: 'a call that was not made uses up the allowance',
    file: 'actors/tool-calls/tool-calls.ts',
    from: '    if (isCallBack) this.day.giveBack(open, { calls: 1, micros: 0 }, open.at)\n',
    to: '',
  },
  {
    name: 'a repeated command probes again',
    file: 'src/tools/service.ts',
    from: '    if (isDuplicate) return this.#recall(id, tool, host, decided.at, verified.signer.id, give)\n',
    to: '',
  },
  {
    name: 'anyone changes a listing',
    file: 'actors/tools/decide.ts',
    from: '  if (entry.owner === author || state',
    to: "  if (entry.owner !== '' || state",
  },
  {
    name: 'a listing is shown in its first version',
    file: 'actors/tools/tools.ts',
    from: "      Object.assign(known, said, { updatedAt: at, withdrawn: '' })",
    to: "      Object.assign(known, said, { updatedAt: at, withdrawn: '', seq: known.seq, shard: known.shard, row: known.row })",
  },
  {
    name: 'a withdrawn listing is found',
    file: 'src/tools/directory.ts',
    from: "      if (this.absence(entry) !== '') index.drop(id)",
    to: '      if (this.tools.hasOptedOut(entry.host)) index.drop(id)',
  },
  {
    name: 'the directory loses its snapshot at a restart',
    file: 'src/tools/directory.ts',
    from: '    this.tools.restore(tools)\n',
    to: '    this.tools.restore({ ...tools, entries: tools.entries.slice(1) })\n',
  },
  {
    name: 'a tail misses events that arrive during backfill',
    file: 'src/follow/tail-routes.ts',
    from: '      reader.after = found.change\n',
    to: '      reader.after = found.change + 1\n',
  },
  {
    name: 'a tail repeats events its reader already has',
    file: 'src/follow/backfill.ts',
    from: '    after = board.events.seq(slot)\n',
    to: '    after = Math.max(0, board.events.seq(slot) - 1)\n',
  },
  {
    name: 'a slow tail reader loses events',
    file: 'src/follow/tail-routes.ts',
    from: '    reader.queue.splice(0, sent)\n',
    to: '    reader.queue.splice(0, sent + 1)\n',
  },
  {
    name: 'a private tail stays when its shard has died',
    seed: '15',
    file: 'src/board/followers.ts',
    from: '    this.tails.losePrivate((room) => shardOf(room, this.#shards) === shard)\n',
    to: '    this.tails.losePrivate((room) => room === String(shard))\n',
  },
  {
    name: 'a tail of a follower that is behind shows what is private',
    file: 'src/workers/actor-host.ts',
    from: "  return kind !== 'hooks' && asked.reader !== ''",
    to: "  return kind !== 'hooks' && kind !== 'tail' && asked.reader !== ''",
  },
  {
    name: 'a call that was paid when the board was killed is paid again',
    file: 'src/tool-calls/open-payments.ts',
    from: '      else this.take(relay, call, payment)\n',
    to: '      else this.#settle(relay.make(call), call)\n',
  },
  {
    name: 'a payment is sent before it is on disk',
    file: 'src/tool-calls/relay.ts',
    from: '    const refusedBecause = await this.#reserve(call, payment)\n',
    to: '    const refusedBecause = undefined\n    void this.#reserve(call, payment)\n',
  },
  {
    name: 'a payment counts as never collected before it has expired',
    file: 'src/payments/payer.ts',
    from: 'return isThere === false && time <= validUntil ? undefined : isThere',
    to: 'return isThere',
  },
  {
    name: 'a transfer that its seller has sent counts as never made',
    seed: '11',
    file: 'src/payments/payer.ts',
    from: 'return Array.isArray(found?.result) ? found.result.length > 0 : undefined',
    to: 'return Array.isArray(found?.result) ? false : undefined',
  },
  {
    name: 'a transaction that its seller has sent counts as never made',
    seed: '7',
    file: 'src/payments/payer.ts',
    from: "return found === undefined ? undefined : isObject(found.result) && found.result.status === '0x1'",
    to: 'return found === undefined ? undefined : false',
  },
  {
    name: 'a transaction is valid for longer than the board says',
    seed: '8',
    file: 'src/payments/tempo.ts',
    from: 'signedTransfer(memo, charge, wallet, validUntil)',
    to: 'signedTransfer(memo, charge, wallet, validUntil + 600)',
  },
  {
    name: 'the wallet pays more than its daily limit',
    file: 'actors/tool-calls/decide.ts',
    from: '  if (state.calls.day.wallet(now) + facts.micros > walletMicros)',
    to: '  if (state.calls.day.wallet(now) > walletMicros)',
  },
  {
    name: 'the wallet pays more than the allowance of the caller',
    file: 'actors/tool-calls/decide.ts',
    from: '  if (!facts.isOperators && facts.micros > coverable)',
    to: '  if (facts.micros < 0)',
  },
  {
    name: 'the wallet pays whoever asks for it',
    file: 'src/tool-calls/relay.ts',
    from: 'offers.filter(({ payee }) => known.has(payee.toLowerCase()))',
    to: 'offers.filter(({ payee }) => known.has(payee.toLowerCase()) || known.size > 0)',
  },
  {
    name: 'the wallet pays more than the caller allows',
    file: 'src/tool-calls/relay.ts',
    from: '  if (most !== undefined && cheapest.micros > most)',
    to: '  if (most !== undefined && cheapest.micros > 2 * most + 1_000_000)',
  },
]
