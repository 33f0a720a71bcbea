/** Zip files with the members that a test gives, including forms that no honest program writes. */
import { crc32, deflateRawSync } from 'node:zlib'

export type ZipMember = {
  readonly name: string
  readonly bytes: Buffer
  /** The size that the member claims to unpack to; absent: its own. */
  readonly claimedBytes?: number
}

export function zipOf(members: readonly ZipMember[]): Buffer {
  const local: Buffer[] = []
  const central: Buffer[] = []
  let offset = 0
  for (const { name, bytes, claimedBytes = bytes.length } of members) {
    const packed = deflateRawSync(bytes)
    const label = Buffer.from(name)
    const facts = Buffer.alloc(26)
    facts.writeUInt16LE(20, 0)
    facts.writeUInt16LE(0x800, 2)
    facts.writeUInt16LE(8, 4)
    facts.writeUInt32LE(crc32(bytes), 10)
    facts.writeUInt32LE(packed.length, 14)
    facts.writeUInt32LE(claimedBytes, 18)
    facts.writeUInt16LE(label.length, 22)
    local.push(Buffer.from('PK\x03\x04', 'latin1'), facts, label, packed)
    const rest = Buffer.alloc(14)
    rest.writeUInt32LE(offset, 10)
    central.push(Buffer.from('PK\x01\x02\x14\x00', 'latin1'), facts, rest, label)
    offset += 30 + label.length + packed.length
  }
  const directory = Buffer.concat(central)
  const end = Buffer.alloc(22)
  end.write('PK\x05\x06', 'latin1')
  end.writeUInt16LE(members.length, 8)
  end.writeUInt16LE(members.length, 10)
  end.writeUInt32LE(directory.length, 12)
  end.writeUInt32LE(offset, 16)
  return Buffer.concat([...local, directory, end])
}
