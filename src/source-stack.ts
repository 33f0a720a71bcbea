/**
 * Stack traces of built code, shown in lines of its source.
 *
 * Node's own `--enable-source-maps` reads every map at start: 11 MB and 160 ms of processor time more. Here a map is read when a
 * trace names its file.
 */
import { readFileSync } from 'node:fs'
import { SourceMap } from 'node:module'
import { dirname, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

/** `stack` with each position in a file that has a source map replaced by that of its source. */
export function sourceStack(stack: string): string {
  return stack.replace(/(file:\/\/[^\s()]+\.js):(\d+):(\d+)/g, (built, url: string, line: string, column: string) => {
    return sourcePosition(url, Number(line), Number(column)) ?? built
  })
}

/** Undefined where there is no map, or none that can be read. Lines and columns count from 1. */
function sourcePosition(url: string, line: number, column: number): string | undefined {
  try {
    const path = fileURLToPath(url)
    const map = new SourceMap(JSON.parse(readFileSync(`${path}.map`, 'utf8')))
    const origin = map.findOrigin(line, column)
    if (!('fileName' in origin)) return undefined
    return `${resolve(dirname(path), origin.fileName)}:${origin.lineNumber}:${origin.columnNumber}`
  } catch {
    return undefined
  }
}
