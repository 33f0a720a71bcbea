/** A leader and its followers, as hosts start them. */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, vi } from 'vitest'
import { createReplicaKeyFile } from '../../src/cli/key-file.ts'
import { type Board, boardDirectory, startBoard } from './board-process.ts'
import { Client } from './client.ts'
import { patience } from './patience.ts'

type Env = Readonly<Record<string, string>>

export class Replicas {
  /** Of the leader. */
  readonly directory = boardDirectory()
  readonly #env: Env
  readonly #stream: Env
  readonly #followerStream: Env
  readonly #keyFile: string

  private constructor(keyFile: string, env: Env, stream: Env, followerStream: Env) {
    this.#keyFile = keyFile
    this.#env = env
    this.#stream = stream
    this.#followerStream = followerStream
  }

  /** `stream`: settings of the leader and of followers for it; omitted: there is none, and followers query the leader. */
  static create(
    env: Env,
    stream: { readonly leader: Env; readonly follower: Env } = { leader: {}, follower: {} },
  ): Replicas {
    const keys = boardDirectory()
    mkdirSync(keys, { recursive: true })
    const keyFile = join(keys, 'replica.key')
    createReplicaKeyFile(keyFile)
    return new Replicas(keyFile, env, stream.leader, stream.follower)
  }

  leader(port = 0): Promise<Board> {
    const env = { ...this.#env, ...this.#stream, REPLICA_KEY_FILE: this.#keyFile }
    return startBoard({ directory: this.directory, port, env })
  }

  /** Of a follower. `leader`: its address. */
  settings(leader: string): Env {
    return { ...this.#env, ...this.#followerStream, FOLLOW: leader, REPLICA_KEY_FILE: this.#keyFile }
  }

  follower(leader: string, directory: string): Promise<Board> {
    return startBoard({ directory, command: 'follow', env: this.settings(leader) })
  }
}

/** The newest signed head of a board. */
async function headOf({ address }: Board): Promise<string> {
  const client = new Client(address, '')
  const { data } = await client.get('/api/log/checkpoint')
  client.close()
  return data.checkpoint!
}

/** The follower has everything that the leader has signed, and says that it is not behind. */
export async function waitUntilCaughtUp(leader: Board, follower: Board): Promise<void> {
  await vi.waitFor(async () => {
    expect(await headOf(follower)).toBe(await headOf(leader))
    expect(await (await fetch(`${follower.address}/healthz`)).text()).not.toContain('following')
  }, patience)
}
