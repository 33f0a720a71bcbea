/**
 * MessagePack, with nothing but JavaScript behind it.
 *
 * The package itself loads a native reader of strings (msgpackr-extract 3.0.4) that keeps one table for the whole process and
 * clears and fills it again whenever one more thread loads it. A thread that decodes in that moment takes the bytes of a
 * binary value for strings, without any error: 8,377 of 1.1 million decodes were wrong beside a thread that did nothing but load
 * it, and a board whose threads are born at once met an event without its signed command in its journal. Without it a record
 * decodes 15 to 35 percent faster, and letters cost 0.6 to 1.1 us more (a post costs about 255).
 */
export { Packr, Unpackr } from 'msgpackr/pack'
