/** How to be refused: for every operation and every code that it declares, a command that gets this answer. */
import { createHash } from 'node:crypto'
import { sizes } from '../../actors/kernel/limits.ts'
import { operationByName } from '../../actors/operations.ts'
import { now } from './client.ts'
import { createDelegation, delegationBody } from './delegations.ts'
import type { World } from './operation-setups.ts'
import {
  byAnotherPerson,
  byBannedPerson,
  byDelegate,
  byRotatedKey,
  cursorFromBeforeRestore,
  eventReadRefusals,
  fullRoom,
  inPrivateRoom,
  inRoomWithPolicy,
  intoFullRoom,
  inUnknownRoom,
  privateBlob,
  privateDoc,
  type RefusalCase,
  roomReadRefusals,
  roomRefusals,
  roomWithPolicy,
  send,
  sendExample,
  signerRefusals,
  targetIsOwner,
  twice,
  unknownIds,
  unsigned,
  writeDocUnderPolicy,
} from './refusals.ts'
import { exhaustAllowance, publishListing } from './tool-setups.ts'
import { workRefusalCases } from './work-refusal-cases.ts'

/** A receive URL whose items are to be posted into this room. */
const receiverInto = (world: World, room: string) =>
  send(world, 'receiver.create', world.someone(), { room, data: '{"schema":1,"post":true}' })

/** By the name of the operation, by code. */
export const refusalCases: Readonly<Record<string, Readonly<Record<string, RefusalCase>>>> = {
  'identity.register': {
    name_taken: (world) => send(world, 'identity.register', world.someone(), { handle: 'admin' }),
  },
  'identity.get': { not_found: sendExample('identity.get') },
  'identity.events': { not_found: sendExample('identity.events') },
  'identity.profile.set': signerRefusals('identity.profile.set'),
  'identity.rotate': {
    key_rotated: async (world) => {
      const signer = world.someone()
      await world.post(signer)
      await world.send(operationByName.get('identity.rotate')!, { signer, ...world.rotation(signer, world.someone()) })
      return world.send(operationByName.get('identity.rotate')!, { signer, ...world.rotation(signer, world.someone()) })
    },
    suspended: async (world) => {
      const signer = world.someone()
      await world.run(world.operator, { operation: 'identity.suspend', target: signer.id, reason: 'x' })
      return world.send(operationByName.get('identity.rotate')!, { signer, ...world.rotation(signer, world.someone()) })
    },
  },
  'delegation.create': {
    key_rotated: async (world) => {
      const signer = world.someone()
      await world.post(signer)
      await world.send(operationByName.get('identity.rotate')!, { signer, ...world.rotation(signer, world.someone()) })
      return world.send(operationByName.get('delegation.create')!, world.delegation(signer))
    },
    suspended: async (world) => {
      const signer = world.someone()
      await world.run(world.operator, { operation: 'identity.suspend', target: signer.id, reason: 'x' })
      return world.send(operationByName.get('delegation.create')!, world.delegation(signer))
    },
    forbidden: byDelegate('delegation.create'),
    bad_key: (world) => {
      // The neutral element of the curve: canonical, and not a key.
      const target = `AQ${'A'.repeat(41)}`
      return send(world, 'delegation.create', world.someone(), { target })
    },
    expired: async (world) => {
      const signer = world.someone()
      const key = world.someone()
      const body = delegationBody(world.client, signer, key, { ttl: 60, signing: { timestamp: now() - 100 } })
      return world.client.send(body)
    },
  },
  'delegation.revoke': {
    ...signerRefusals('delegation.revoke'),
    forbidden: byDelegate('delegation.revoke'),
    not_found: sendExample('delegation.revoke'),
    wrong_state: twice('delegation.revoke'),
  },
  'delegation.list': { forbidden: byDelegate('delegation.list') },
  'identity.suspend': {
    ...signerRefusals('identity.suspend'),
    forbidden: sendExample('identity.suspend'),
    wrong_state: twice('identity.suspend'),
  },
  'identity.unsuspend': {
    ...signerRefusals('identity.unsuspend'),
    forbidden: sendExample('identity.unsuspend'),
    wrong_state: twice('identity.unsuspend'),
  },
  'identity.erase': {
    ...signerRefusals('identity.erase'),
    forbidden: sendExample('identity.erase'),
    wrong_state: twice('identity.erase'),
  },
  'room.create': { name_taken: (world) => send(world, 'room.create', world.someone(), { room: 'lobby' }) },
  'room.get': roomReadRefusals('room.get'),
  'rooms.list': {
    unsigned: (world) =>
      world.client.send(JSON.stringify({ operation: 'rooms.list', data: '{"schema":1,"own":true}' })),
  },
  'room.pages': roomReadRefusals('room.pages'),
  'room.join': {
    ...roomRefusals('room.join'),
    conflict: twice('room.join'),
    forbidden: async (world) => {
      const out = world.someone()
      const { owner, room } = await world.room({ members: [out.id] })
      await world.run(owner, { operation: 'room.member.remove', room, target: out.id })
      return send(world, 'room.join', out, { room })
    },
  },
  'room.leave': {
    ...roomRefusals('room.leave'),
    wrong_state: async (world) => {
      const { owner, room } = await world.room()
      return send(world, 'room.leave', owner, { room })
    },
  },
  'room.members': roomReadRefusals('room.members'),
  'room.member.add': {
    ...roomRefusals('room.member.add'),
    forbidden: byAnotherPerson('room.member.add'),
    conflict: twice('room.member.add'),
    wrong_state: intoFullRoom('room.member.add'),
  },
  'room.member.remove': {
    ...roomRefusals('room.member.remove'),
    forbidden: byAnotherPerson('room.member.remove'),
    wrong_state: targetIsOwner('room.member.remove'),
  },
  'room.moderator.add': {
    ...roomRefusals('room.moderator.add'),
    forbidden: byAnotherPerson('room.moderator.add'),
    conflict: twice('room.moderator.add'),
    wrong_state: intoFullRoom('room.moderator.add'),
  },
  'room.moderator.remove': {
    ...roomRefusals('room.moderator.remove'),
    forbidden: byAnotherPerson('room.moderator.remove'),
  },
  'room.owner.transfer': {
    ...roomRefusals('room.owner.transfer'),
    forbidden: byAnotherPerson('room.owner.transfer'),
    conflict: targetIsOwner('room.owner.transfer'),
    wrong_state: intoFullRoom('room.owner.transfer'),
  },
  'room.invite.create': {
    ...roomRefusals('room.invite.create'),
    forbidden: byAnotherPerson('room.invite.create'),
    wrong_state: async (world) => {
      const { owner, room } = await world.room()
      for (let n = 0; n < 8; n++) await world.invite(owner, room)
      return send(world, 'room.invite.create', owner, { room })
    },
  },
  'room.invite.accept': {
    forbidden: sendExample('room.invite.accept'),
    conflict: async (world) => {
      const { owner, room } = await world.privateRoom()
      const code = await world.invite(owner, room)
      return send(world, 'room.invite.accept', owner, { data: JSON.stringify({ schema: 1, code }) })
    },
    wrong_state: async (world) => {
      const { owner, room } = await fullRoom(world)
      const code = await world.invite(owner, room)
      return send(world, 'room.invite.accept', world.someone(), { data: JSON.stringify({ schema: 1, code }) })
    },
  },
  'room.policy.get': roomReadRefusals('room.policy.get'),
  'room.policy.set': { ...roomRefusals('room.policy.set'), forbidden: byAnotherPerson('room.policy.set') },
  'room.hide': {
    not_found: sendExample('room.hide'),
    forbidden: byAnotherPerson('room.hide'),
    wrong_state: twice('room.hide'),
  },
  'thread.pin': {
    not_found: sendExample('thread.pin'),
    forbidden: byAnotherPerson('thread.pin'),
    wrong_state: twice('thread.pin'),
  },
  'thread.lock': {
    not_found: sendExample('thread.lock'),
    forbidden: byAnotherPerson('thread.lock'),
    wrong_state: twice('thread.lock'),
  },
  'thread.move': {
    not_found: sendExample('thread.move'),
    forbidden: byAnotherPerson('thread.move'),
    private_room: async (world) => {
      const { owner, event } = await world.roomWithPost()
      const { room: to } = await world.privateRoom()
      return send(world, 'thread.move', owner, { event_id: event, data: JSON.stringify({ schema: 1, to }) })
    },
    room_write_restricted: async (world) => {
      const { owner, event } = await world.roomWithPost()
      const { owner: another, room: to } = await world.room()
      await world.run(another, { operation: 'room.ban', room: to, target: owner.id, reason: 'x' })
      return send(world, 'thread.move', owner, { event_id: event, data: JSON.stringify({ schema: 1, to }) })
    },
    wrong_state: twice('thread.move'),
  },
  'room.restore': {
    not_found: sendExample('room.restore'),
    forbidden: byAnotherPerson('room.restore'),
    wrong_state: twice('room.restore'),
  },
  'room.modlog': roomReadRefusals('room.modlog'),
  'room.ban': {
    ...roomRefusals('room.ban'),
    forbidden: byAnotherPerson('room.ban'),
    wrong_state: twice('room.ban'),
  },
  'room.unban': {
    ...roomRefusals('room.unban'),
    forbidden: byAnotherPerson('room.unban'),
    wrong_state: twice('room.unban'),
  },
  'room.bans': roomReadRefusals('room.bans'),
  report: { not_found: sendExample('report'), conflict: twice('report') },
  'reports.list': { forbidden: sendExample('reports.list') },
  'reports.summary': { forbidden: sendExample('reports.summary') },
  'limits.grant': { forbidden: sendExample('limits.grant') },
  'limits.revoke': { forbidden: sendExample('limits.revoke'), wrong_state: twice('limits.revoke') },
  'limits.list': { forbidden: sendExample('limits.list') },
  'report.resolve': {
    not_found: (world) => send(world, 'report.resolve', world.operator),
    forbidden: byAnotherPerson('report.resolve'),
    wrong_state: twice('report.resolve'),
  },
  post: {
    not_found: (world) => send(world, 'post', world.someone(), { reply_to: '0123456789abcdef'.repeat(2) }),
    private_room: inPrivateRoom('post'),
    forbidden: async (world) => {
      const data = JSON.stringify({ schema: 1, supersedes: await world.post() })
      return send(world, 'post', world.someone(), { data })
    },
    wrong_state: inRoomWithPolicy('post', { closed: true }),
    conflict: async (world) => {
      const signer = world.someone()
      const original = await world.post(signer)
      const second = await world.post(signer, { data: JSON.stringify({ schema: 1, supersedes: original }) })
      await world.post(signer, { data: JSON.stringify({ schema: 1, supersedes: second }) })
      return send(world, 'post', signer, { data: JSON.stringify({ schema: 1, supersedes: second }) })
    },
    proof_required: inRoomWithPolicy('post', { proof_bits: 20 }),
    room_write_restricted: inRoomWithPolicy('post', { write: 'members' }),
    room_reply_restricted: async (world) => {
      const { owner, room, stranger } = await roomWithPolicy(world, { reply: 'none' })
      return send(world, 'post', stranger, { room, reply_to: await world.post(owner, { room }) })
    },
  },
  'event.get': eventReadRefusals('event.get'),
  'event.history': eventReadRefusals('event.history'),
  'events.list': roomReadRefusals('events.list'),
  'thread.get': eventReadRefusals('thread.get'),
  'threads.list': {
    ...roomReadRefusals('threads.list'),
    missing_field: (world) => send(world, 'threads.list', world.someone(), { page: 'main' }),
  },
  'event.redact': {
    not_found: sendExample('event.redact'),
    forbidden: byAnotherPerson('event.redact'),
    wrong_state: twice('event.redact'),
  },
  vote: {
    not_found: sendExample('vote'),
    forbidden: async (world) => {
      const signer = world.someone()
      return send(world, 'vote', signer, { event_id: await world.post(signer) })
    },
    wrong_state: async (world) => {
      const author = world.someone()
      const event = await world.post(author)
      await world.run(author, { operation: 'event.redact', event_id: event, reason: 'x' })
      return send(world, 'vote', world.someone(), { event_id: event })
    },
    room_write_restricted: byBannedPerson('vote', async (world, owner, room) => ({
      event_id: await world.post(owner, { room }),
    })),
  },
  'blob.put': {
    forbidden: async (world) => {
      const target = createHash('sha256').update('taken down').digest('hex')
      await world.send(operationByName.get('blob.takedown')!, { signer: world.operator, fields: { target } })
      const data = Buffer.from('taken down').toString('base64url')
      return send(world, 'blob.put', world.someone(), { data })
    },
    not_found: inUnknownRoom('blob.put'),
    private_room: inPrivateRoom('blob.put'),
    room_write_restricted: inRoomWithPolicy('blob.put', { write: 'members', reply: 'members' }),
    wrong_state: inRoomWithPolicy('blob.put', { closed: true }),
  },
  'blob.get': { not_found: sendExample('blob.get'), private_room: privateBlob },
  'blob.delete': { not_found: sendExample('blob.delete'), forbidden: byAnotherPerson('blob.delete') },
  'blob.takedown': {
    ...signerRefusals('blob.takedown'),
    forbidden: sendExample('blob.takedown'),
    wrong_state: twice('blob.takedown'),
  },
  'docs.create': {
    not_found: inUnknownRoom('docs.create'),
    private_room: inPrivateRoom('docs.create'),
    room_write_restricted: inRoomWithPolicy('docs.create', { write: 'members' }),
    wrong_state: inRoomWithPolicy('docs.create', { closed: true }),
  },
  'docs.read': { not_found: sendExample('docs.read'), private_room: privateDoc('docs.read') },
  'docs.write': {
    not_found: sendExample('docs.write'),
    forbidden: byAnotherPerson('docs.write'),
    room_write_restricted: writeDocUnderPolicy({ write: 'members' }),
    wrong_state: writeDocUnderPolicy({ closed: true }),
  },
  'docs.list': {
    not_found: inUnknownRoom('docs.list'),
    private_room: inPrivateRoom('docs.list'),
    unsigned: (world) => world.client.send(JSON.stringify({ operation: 'docs.list', data: '{"schema":1,"own":true}' })),
  },
  'docs.history': { not_found: sendExample('docs.history'), private_room: privateDoc('docs.history') },
  'docs.delete': { not_found: sendExample('docs.delete'), forbidden: byAnotherPerson('docs.delete') },
  'conversation.open': {
    ...signerRefusals('conversation.open'),
    wrong_state: async (world) => {
      const { opener, other } = await world.conversation()
      for (let n = 0; n < 9; n++)
        await world.run(opener, { operation: 'conversation.open', members: [other.id], text: 'x' })
      return send(world, 'conversation.open', opener, { members: [other.id] })
    },
  },
  'conversation.respond': {
    ...signerRefusals('conversation.respond'),
    not_found: sendExample('conversation.respond'),
    wrong_state: async (world) => {
      const { opener, room } = await world.conversation()
      return send(world, 'conversation.respond', opener, { room })
    },
    private_room: byAnotherPerson('conversation.respond'),
  },
  'conversations.list': { unsigned: unsigned('conversations.list'), key_rotated: byRotatedKey('conversations.list') },
  ...workRefusalCases,
  'room.follow': {
    not_found: inUnknownRoom('room.follow'),
    private_room: inPrivateRoom('room.follow'),
    wrong_state: async (world) => {
      const signer = world.someone()
      const threads = await Promise.all(Array.from({ length: sizes.follows }, () => world.post()))
      await Promise.all(threads.map((event_id) => world.run(signer, { operation: 'thread.follow', event_id })))
      return send(world, 'room.follow', signer)
    },
  },
  'thread.follow': {
    ...eventReadRefusals('thread.follow'),
    wrong_state: async (world) => {
      const signer = world.someone()
      const threads = await Promise.all(Array.from({ length: sizes.follows }, () => world.post()))
      await Promise.all(threads.map((event_id) => world.run(signer, { operation: 'thread.follow', event_id })))
      return send(world, 'thread.follow', signer, { event_id: await world.post() })
    },
  },
  'follows.list': { unsigned: unsigned('follows.list'), key_rotated: byRotatedKey('follows.list') },
  'mutes.list': { unsigned: unsigned('mutes.list'), key_rotated: byRotatedKey('mutes.list') },
  'identity.mute': {
    wrong_state: async (world) => {
      const signer = world.someone()
      const done = (target: string) => world.run(signer, { operation: 'identity.mute', target })
      await Promise.all(unknownIds(sizes.mutes).map(done))
      return send(world, 'identity.mute', signer)
    },
  },
  'inbox.seen': {
    rate_limited: async (world) => {
      const signer = world.someone()
      await world.run(signer, { operation: 'inbox.seen', data: '{"schema":1,"inbox":1}' })
      return send(world, 'inbox.seen', signer, { data: '{"schema":1,"inbox":2}' })
    },
  },
  'inbox.get': { unsigned: unsigned('inbox.get'), key_rotated: byRotatedKey('inbox.get') },
  'updates.get': {
    expired: cursorFromBeforeRestore,
    not_found: (world) =>
      send(world, 'updates.get', world.someone(), { data: '{"schema":1,"rooms":["no-such-room"]}' }),
    private_room: async (world) => {
      const { room } = await world.privateRoom()
      return send(world, 'updates.get', world.someone(), { data: JSON.stringify({ schema: 1, rooms: [room] }) })
    },
  },
  'changes.list': {
    expired: (world) => send(world, 'changes.list', world.someone(), { data: '{"schema":1,"after":999999999}' }),
  },
  'room.read_token': {
    ...roomRefusals('room.read_token'),
    wrong_state: (world) => send(world, 'room.read_token', world.someone(), { room: 'lobby' }),
  },
  'webhook.create': {
    not_found: async (world) =>
      send(world, 'webhook.create', world.someone(), { data: await world.hookData({ room: 'no-such-room' }) }),
    private_room: async (world) => {
      const { room } = await world.privateRoom()
      return send(world, 'webhook.create', world.someone(), { data: await world.hookData({ room }) })
    },
    // By a delegate without the right to read private rooms.
    forbidden: async (world) => {
      const key = world.someone()
      await createDelegation(world.client, world.someone(), key, { scopes: ['events:subscribe'] })
      return send(world, 'webhook.create', key, {
        data: await world.hookData({ kinds: ['inbox.item'], room: undefined }),
      })
    },
    // Nobody listens there.
    wrong_state: async (world) =>
      send(world, 'webhook.create', world.someone(), { data: await world.hookData({ url: 'http://127.0.0.1:1025/' }) }),
  },
  'webhook.list': { unsigned: unsigned('webhook.list'), key_rotated: byRotatedKey('webhook.list') },
  'webhook.rotate': {
    not_found: byAnotherPerson('webhook.rotate'),
    // By another delegate than the one with which the webhook ends.
    forbidden: async (world) => {
      const [signer, first, second] = [world.someone(), world.someone(), world.someone()]
      const target = await world.webhook(signer)
      for (const key of [first, second])
        await createDelegation(world.client, signer, key, { scopes: ['events:subscribe', 'board:read'] })
      await world.run(first, { operation: 'webhook.rotate', target })
      return send(world, 'webhook.rotate', second, { target })
    },
  },
  'webhook.delete': { not_found: byAnotherPerson('webhook.delete') },
  'webhook.deliveries': {
    unsigned: unsigned('webhook.deliveries'),
    key_rotated: byRotatedKey('webhook.deliveries'),
    not_found: byAnotherPerson('webhook.deliveries'),
  },
  'webhook.redeliver': { not_found: byAnotherPerson('webhook.redeliver') },
  'receiver.create': {
    not_found: (world) => receiverInto(world, 'no-such-room'),
    private_room: async (world) => receiverInto(world, (await world.privateRoom()).room),
    room_write_restricted: async (world) =>
      receiverInto(world, (await roomWithPolicy(world, { write: 'members' })).room),
    wrong_state: async (world) => {
      const signer = world.someone()
      for (let n = 0; n < 8; n++) await world.receiver(signer)
      return send(world, 'receiver.create', signer)
    },
  },
  'receiver.list': { unsigned: unsigned('receiver.list'), key_rotated: byRotatedKey('receiver.list') },
  'receiver.items': {
    unsigned: unsigned('receiver.items'),
    key_rotated: byRotatedKey('receiver.items'),
    not_found: byAnotherPerson('receiver.items'),
  },
  'receiver.rotate': { not_found: byAnotherPerson('receiver.rotate') },
  'receiver.delete': { not_found: byAnotherPerson('receiver.delete') },
  'tools.get': { not_found: (world) => send(world, 'tools.get', world.someone(), { target: 'no-such-tool' }) },
  'tools.probe': {
    not_found: sendExample('tools.probe'),
    wrong_state: async (world) => {
      const row = {
        id: 'list:nowhere',
        type: 'service',
        kind: 'mcp',
        name: 'Nowhere',
        description: '',
        source: 'a test',
      }
      await world.run(world.operator, { operation: 'tools.import', data: JSON.stringify({ schema: 1, rows: [row] }) })
      return send(world, 'tools.probe', world.someone(), { target: row.id })
    },
  },
  'tools.review': { not_found: sendExample('tools.review') },
  'tools.publish': {
    wrong_state: async (world) => {
      const signer = world.someone()
      await Promise.all(Array.from({ length: 200 }, () => publishListing(world, signer)))
      return send(world, 'tools.publish', signer)
    },
  },
  'tools.update': {
    not_found: sendExample('tools.update'),
    forbidden: byAnotherPerson('tools.update'),
    wrong_state: async (world) => {
      const signer = world.someone()
      const target = await publishListing(world, signer)
      await world.run(world.operator, { operation: 'tools.withdraw', target })
      return send(world, 'tools.update', signer, { target })
    },
  },
  'tools.withdraw': {
    not_found: sendExample('tools.withdraw'),
    forbidden: byAnotherPerson('tools.withdraw'),
    wrong_state: twice('tools.withdraw'),
  },
  'tools.import': { forbidden: sendExample('tools.import') },
  'tools.call': {
    not_found: (world) => send(world, 'tools.call', world.someone(), { target: 'no-such-tool' }),
    allowance_exhausted: exhaustAllowance,
  },
  'tools.relay': {
    ...signerRefusals('tools.relay'),
    forbidden: sendExample('tools.relay'),
    not_found: (world) => send(world, 'tools.relay', world.operator, { target: 'no-such-tool' }),
  },
  'log.proof': { not_found: sendExample('log.proof') },
  'log.consistency': {
    not_found: (world) =>
      send(world, 'log.consistency', world.someone(), { data: '{"schema":1,"from":1,"to":999999}' }),
  },
  'log.leaves': {
    not_found: (world) =>
      send(world, 'log.leaves', world.someone(), { data: '{"schema":1,"start":999998,"end":999999}' }),
  },
}
