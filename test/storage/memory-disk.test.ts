/** The simulated disk keeps what storage/disk.ts promises over a power cut, and nothing beyond that. */
import { expect, test } from 'vitest'
import { MemoryDisk, PowerLost } from '../support/memory-disk.ts'

/** `arrives`: whether writes in flight when the power goes off survive. */
function disk(arrives: boolean): MemoryDisk {
  const made = new MemoryDisk({
    soon: (callback) => void setImmediate(callback),
    randomBelow: (below) => (arrives ? below - 1 : 0),
  })
  made.makeDirectory('/board/log')
  return made
}

const text = (from: MemoryDisk, path: string) => from.readWhole(path).toString()

test.each([false, true])('synced bytes under a durable name survive; what else survives: %s', (arrives) => {
  const memory = disk(arrives)
  const file = memory.openFile('/board/log/a', 'create')
  file.writeAt(Buffer.from('synced'), 0)
  file.sync()
  memory.syncDirectory('/board/log')
  file.writeAt(Buffer.from(' and not'), 6)
  memory.restore()
  expect(text(memory, '/board/log/a')).toBe(arrives ? 'synced and not' : 'synced')
})

test('a name that was not synced is gone, and one that was removed without a sync is back', () => {
  const memory = disk(false)
  memory.writeAtomic('/board/kept', Buffer.from('old'))
  const file = memory.openFile('/board/log/a', 'create')
  file.writeAt(Buffer.from('synced'), 0)
  file.sync()
  memory.removeUnsynced('/board/kept')
  expect(memory.fileExists('/board/kept')).toBe(false)
  memory.restore()
  expect(memory.listFiles('/board/log')).toEqual([])
  expect(text(memory, '/board/kept')).toBe('old')
})

test('a file replaced atomically is the old one or the new one after a power cut at any operation', () => {
  const found = new Set<string>()
  for (let operations = 0; operations < 10; operations++) {
    const memory = disk(false)
    memory.writeAtomic('/board/key', Buffer.from('old'))
    memory.cutAfter(operations)
    let isWritten = true
    try {
      memory.writeAtomic('/board/key', Buffer.from('new'))
    } catch (error) {
      expect(error).toBeInstanceOf(PowerLost)
      isWritten = false
    }
    memory.restore()
    if (isWritten) expect(text(memory, '/board/key')).toBe('new')
    found.add(text(memory, '/board/key'))
  }
  expect(found).toEqual(new Set(['old', 'new']))
})

test('a background sync covers what was written before it began', async () => {
  const memory = disk(false)
  const file = memory.openFile('/board/log/a', 'create')
  memory.syncDirectory('/board/log')
  file.writeAt(Buffer.from('before'), 0)
  const { promise, resolve } = Promise.withResolvers<unknown>()
  file.syncLater(resolve)
  file.writeAt(Buffer.from(' after'), 6)
  expect(await promise).toBeUndefined()
  memory.restore()
  expect(text(memory, '/board/log/a')).toBe('before')
})
