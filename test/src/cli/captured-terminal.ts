/** A terminal whose output a test can read, without progress lines. */
import { Writable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Terminal } from '../../../src/cli/command-line.ts'
import { systemClock } from '../../../src/clock.ts'
import { withoutProgress } from '../../support/without-progress.ts'

export type CapturedTerminal = Terminal & { readonly said: { out: string; err: string } }

export function capturedTerminal(): CapturedTerminal {
  const said = { out: '', err: '' }
  return {
    said,
    clock: systemClock,
    wait: sleep,
    out: (text) => {
      said.out += text
    },
    err: (text) => {
      said.err += withoutProgress(text)
    },
    isInteractive: false,
    outStream: new Writable({
      write(chunk: Buffer, _encoding, done) {
        said.out += chunk.toString('utf8')
        done()
      },
    }),
  }
}
