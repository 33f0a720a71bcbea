/**
 * Parsers of bytes that anybody may have written: each target tries one mutated input, and throws if a promise is broken.
 *
 * A parser may refuse its input in its own way. It never accepts a mutated input as the original, and never ends the process.
 */
import { isDeepStrictEqual } from 'node:util'
import { Packr, Unpackr } from '../../actors/kernel/msgpack.ts'
import { CursorSealer } from '../../src/format/cursor.ts'
import { parseStrictJson } from '../../src/format/strict-json.ts'
import { createNodeServer } from '../../src/http/node.ts'
import { type Exchange, type HttpServer, headBytesMax } from '../../src/http/port.ts'
import { createUwsServer } from '../../src/http/uws.ts'
import { formatCheckpoint, openCheckpoint } from '../../storage/checkpoint.ts'
import { decodeFrame, encodeFrame, FRAME_HEADER_BYTES } from '../../storage/frame.ts'
import { Journal } from '../../storage/journal.ts'
import { parseVkey, signNote } from '../../storage/note.ts'
import { createNoteKey } from '../../storage/note-signer.ts'
import { formatTilePath, parseTilePath } from '../../storage/tile-path.ts'
import { numberedFrame } from '../support/frames.ts'
import { MemoryDisk } from '../support/memory-disk.ts'
import { RawConnection, rawRequest } from '../support/raw-http.ts'
import { mutate, type Random } from './mutate.ts'

export type Target = {
  readonly name: string
  /** Tries one input. Throws if a promise is broken. */
  readonly attempt: (random: Random) => void | Promise<void>
  /** Inputs in flight at once; 1 if an attempt waits for nothing. */
  readonly concurrency?: number
  readonly close?: () => Promise<void>
}

export const targets: readonly (() => Target | Promise<Target>)[] = [
  strictJson,
  cursors,
  frames,
  journals,
  checkpoints,
  tilePaths,
  messagePack,
  () => http('uws'),
  () => http('node'),
]

function fail(what: string, input: Uint8Array): never {
  throw new Error(`${what}; the input in base64: ${Buffer.from(input).toString('base64')}`)
}

/** Accepts no more than JSON.parse does, with the same result. */
function strictJson(): Target {
  const samples = [
    '{"operation":"post","room":"lobby","text":"a \\u00fc \\ud83d\\ude00","ttl":0,"data":"{}","attachments":[]}',
    '[1,-2,3,{"a":{"b":[true,false,null]}},"\\n\\"",9007199254740991]',
    '{"a":1,"b":{"a":2,"__proto__":{}},"c":[[[[[[[[[[]]]]]]]]]]}',
    'null',
  ].map((text) => Buffer.from(text))
  return {
    name: 'strict JSON',
    attempt: (random) => {
      const input = mutate(samples, random)
      const found = parseStrictJson(input)
      if (!found.ok) return found.message === '' ? fail('refused without a reason', input) : undefined
      if (!isDeepStrictEqual(found.value, JSON.parse(input.toString('utf8')))) fail('it has another meaning', input)
    },
  }
}

/** Opens what it sealed for this list, and nothing else. */
function cursors(): Target {
  const sealer = new CursorSealer(Buffer.alloc(32, 7))
  const places = [1, 17, 'a place', [3, 'x'], { seq: 9, at: 12 }]
  const texts = places.map((place) => sealer.seal('list', place))
  const samples = texts.map((text) => Buffer.from(text))
  return {
    name: 'cursors',
    attempt: (random) => {
      const input = mutate(samples, random)
      const text = input.toString('latin1')
      const found = sealer.open('list', text)
      const known = texts.indexOf(text)
      if (!isDeepStrictEqual(found, known < 0 ? undefined : places[known]))
        fail('it opened what it did not seal', input)
    },
  }
}

/** A frame is decoded as it was written, or not at all. */
function frames(): Target {
  const seed = 0x12345678
  const written = [1, 2, 3].map((seq) => ({ seq, ...numberedFrame(seq) }))
  const samples = written.map(({ seq, ...frame }) => {
    const bytes = Buffer.alloc(FRAME_HEADER_BYTES + frame.payload.length)
    encodeFrame(bytes, 0, frame, { seq, durableSeq: seq - 1, seed })
    return bytes
  })
  return {
    name: 'frames',
    attempt: (random) => {
      const input = mutate(samples, random)
      const found = decodeFrame(input, 0, input.length, seed)
      if (found.frameBytes === undefined) return
      const { seq, type, flags, payload, durableSeq } = found
      const same = written.find((each) => each.seq === seq)
      const isSame =
        same !== undefined &&
        type === same.type &&
        flags === same.flags &&
        payload.equals(same.payload) &&
        durableSeq === seq - 1
      if (!isSame) fail('it took a changed frame for one that was written', input)
    },
  }
}

const journalDirectory = '/journal'
const journalFrames = 40

/** A journal with one changed file opens with frames that were written, each at its number, or reports the damage. */
function journals(): Target {
  const disk = emptyDisk()
  const open = (on: MemoryDisk) => Journal.open({ disk: on, directory: journalDirectory, segmentBytesMax: 4_096 })
  const journal = open(disk)
  for (let seq = 1; seq <= journalFrames; seq++) journal.append([numberedFrame(seq)])
  journal.close()
  const files = disk.listFiles(journalDirectory).map((name) => `${journalDirectory}/${name}`)
  const contents = files.map((path) => disk.readWhole(path))
  return {
    name: 'journals',
    attempt: (random) => {
      const changed = random(files.length)
      const input = mutate([contents[changed]!], random)
      const copy = emptyDisk()
      for (const [n, path] of files.entries()) copy.writeAtomic(path, n === changed ? input : contents[n]!)
      try {
        const opened = open(copy)
        for (let seq = 1; seq < opened.nextSeq; seq++) {
          const found = opened.read(seq)
          const { type, payload } = numberedFrame(seq)
          if (found?.type !== type || !found.payload.equals(payload))
            fail(`frame ${seq} is not what was written`, input)
        }
        opened.close()
      } catch (error) {
        if (!['Damage', 'UnusableDirectory'].includes((error as Error).name)) throw error
      }
    },
  }
}

function emptyDisk(): MemoryDisk {
  const disk = new MemoryDisk({ soon: (callback) => callback(), randomBelow: () => 0 })
  disk.makeDirectory(journalDirectory)
  return disk
}

/** Whatever is changed around a signed head, its origin, size and root are the signed ones. */
function checkpoints(): Target {
  const { signer, vkey } = createNoteKey('board.example/log/2026a', Buffer.alloc(32, 5))
  const key = parseVkey(vkey)
  if (!key.ok) throw new Error(key.problem)
  const heads = [1, 77, 2 ** 40].map((size) =>
    formatCheckpoint({ origin: signer.name, size, root: Buffer.alloc(32, size % 251) }),
  )
  const samples = heads.map((text) => Buffer.from(signNote(text, signer)))
  return {
    name: 'checkpoints',
    attempt: (random) => {
      const input = mutate(samples, random)
      const found = openCheckpoint(input, key.value)
      if (!found.ok) return found.problem === '' ? fail('refused without a reason', input) : undefined
      if (!heads.includes(formatCheckpoint(found.value))) fail('it took a changed head for a signed one', input)
    },
  }
}

/** A tile has one path. */
function tilePaths(): Target {
  const samples = ['tile/0/000', 'tile/entries/x001/234.p/17', 'tile/2/x999/x999/x999/999', 'tile/63/001.p/255'].map(
    (path) => Buffer.from(path),
  )
  return {
    name: 'tile paths',
    attempt: (random) => {
      const input = mutate(samples, random)
      const path = input.toString('latin1')
      const found = parseTilePath(path)
      if (found !== undefined && Number.isSafeInteger(found.index) && formatTilePath(found) !== path)
        fail('it took a second spelling of a path', input)
    },
  }
}

/** Any input is decoded or refused with an error, and allocates no more memory than its size warrants. */
function messagePack(): Target {
  const coder = new Packr({ useRecords: false })
  const decoder = new Unpackr({ useRecords: false })
  const values = [
    { type: 2, room: 'lobby', by: { key: Buffer.alloc(32, 1), sig: Buffer.alloc(64, 2), signed: Buffer.from('{}') } },
    [1, -1, 2 ** 40, 1.5, 'text', null, true, ['x'.repeat(300)], { a: {} }],
    new Map([['a', 1]]),
  ]
  const samples = values.map((value) => Buffer.from(coder.pack(value)))
  return {
    name: 'MessagePack',
    attempt: (random) => {
      const input = mutate(samples, random)
      try {
        decoder.unpack(input)
      } catch (error) {
        if (!(error instanceof Error)) fail('it threw what is no error', input)
      }
    },
  }
}

const requests = [
  'GET /echo?a=b HTTP/1.1\r\nHost: a\r\n\r\n',
  'POST /echo HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{"a":"b"}',
  'POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n',
  'GET /a HTTP/1.1\r\nHost: a\r\nConnection: keep-alive\r\n\r\nGET /b HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n',
  'HEAD /echo HTTP/1.0\r\nHost: a\r\nX-Forwarded-For: 10.0.0.1\r\n\r\n',
].map((text) => Buffer.from(text, 'latin1'))

/** Requests between two checks whether the server is alive. */
const attemptsPerCheck = 64

/** An engine answers in HTTP or closes, has no internal error, and continues. */
async function http(engine: 'uws' | 'node'): Promise<Target> {
  // The native engine reads it when it is loaded.
  process.env.UWS_HTTP_MAX_HEADERS_SIZE = String(headBytesMax)
  const faults: unknown[] = []
  const echo = (exchange: Exchange): void => {
    exchange.readBody(1_000, (result) => {
      if (result.ok) exchange.reply(200, [['Content-Type', 'text/plain']], `${exchange.method} ${exchange.path}`)
      else exchange.reply(400, [], 'too long')
    })
  }
  const options = {
    now: () => performance.now(),
    refusal: (status: number) => `{"status":${status}}`,
    onFault: (error: unknown) => `{"id":${faults.push(error)}}`,
    onDeadline: () => {},
  }
  const server: HttpServer = await (engine === 'uws' ? createUwsServer(echo, options) : createNodeServer(echo, options))
  const port = await server.listen('127.0.0.1', 0)
  let attempts = 0
  return {
    name: `HTTP on ${engine}`,
    concurrency: 16,
    attempt: async (random) => {
      const input = mutate(requests, random)
      const connection = await RawConnection.open(port)
      connection.send(input)
      connection.socket.end()
      await connection.closed()
      const { received } = connection
      if (received.length > 0 && !/^HTTP\/1\.1 [1-5]\d\d /.test(received.toString('latin1', 0, 13)))
        fail('the answer is not HTTP', input)
      if (faults.length > 0) throw new Error(`a fault of the server: ${String(faults[0])}; ${input.toString('base64')}`)
      if (++attempts % attemptsPerCheck !== 0) return
      if ((await rawRequest(port, requests[0]!))?.status !== 200) fail('the server answers no more', input)
    },
    close: () => server.close(),
  }
}
