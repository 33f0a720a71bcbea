/** Before any test: what the tests run in processes of their own is built from the sources that stand here. */
import '../../src/build.ts'

export function setup(): void {}
