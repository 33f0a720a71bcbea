/** Runs before all tests: builds what the tests run in separate processes from the current sources. */
import '../../src/build.ts'

export function setup(): void {}
