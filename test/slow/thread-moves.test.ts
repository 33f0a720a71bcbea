/**
 * Moves of threads where it takes long to see them: over kills, in a browser, from the command line and over MCP. The rooms are on
 * different shards.
 */
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { shardOf } from '../../actors/shard.ts'
import { createKey } from '../../src/client/broadside.ts'
import { opensslSigner } from '../../src/cli/sign.ts'
import { skipNote, skipWithout } from '../peers/peers.ts'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { button, complaintsOf, missingBrowser, openPage, picture } from '../support/browser.ts'
import { Client, person } from '../support/client.ts'
import { damagesOf } from '../support/fsck-damage.ts'
import { call, OauthClient } from '../support/oauth-client.ts'
import { program } from '../support/program.ts'
import { runProgram } from '../support/run-program.ts'
