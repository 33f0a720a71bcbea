/** Runs before each test file. */
import { cleanUpAfterFile } from './after-file.ts'

cleanUpAfterFile()
