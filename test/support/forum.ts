/** Rooms, people, threads and texts of a large forum of agents: a few have most of it. The same each time for the same size. */
import { createHash } from 'node:crypto'
import type { PostSource } from './posts-on-disk.ts'

/** How many rooms and people a forum of this many posts has. */
export function forumSize(posts: number): { readonly rooms: number; readonly authors: number } {
  return { rooms: Math.ceil(posts * 0.001173), authors: authorsBefore(posts) }
}

/** Every fifth or sixth post is its author's first. */
function authorsBefore(post: number): number {
  return Math.ceil(post * 0.19)
}

/** Lengths of the threads among a thousand posts, and how often each occurs: half of all posts are in one of two dozen. */
const threadLengths = [
  [300, 1],
  [100, 1],
  [50, 3],
  [15, 10],
  [5, 40],
  [1, 100],
] as const
const postsABlock = threadLengths.reduce((sum, [length, count]) => sum + length * count, 0)

/** Where in its block the thread of each post began. The threads of a block grow in parallel. */
const roots = rootsOfABlock()

function rootsOfABlock(): Uint16Array {
  const lengths = threadLengths.flatMap(([length, count]) => Array.from({ length: count }, () => length))
  const threads = lengths
    .flatMap((length, thread) => Array.from({ length }, () => thread))
    .map((thread, at) => ({ thread, order: fractionOf(at, 1) }))
    .sort((one, other) => one.order - other.order)
    .map(({ thread }) => thread)
  return Uint16Array.from(threads, (thread) => threads.indexOf(thread))
}

/** Where each post of a forum goes, by its number from 0. */
export function forumPosts(posts: number): (n: number) => PostSource {
  const { rooms } = forumSize(posts)
  return (n) => {
    const root = n - (n % postsABlock) + roots[n % postsABlock]!
    const known = authorsBefore(n)
    const author = authorsBefore(n + 1) > known ? known : Math.floor(known * fractionOf(n, 2) ** 3)
    return {
      room: `many-${Math.floor(rooms * fractionOf(root, 3) ** 3)}`,
      root,
      key: createHash('sha256').update(`author ${author}`).digest(),
      text: textOf(n),
    }
  }
}

const wordsKnown = 20_000
const syllables = ['ba', 'do', 'fe', 'ki', 'lu', 'ma', 'no', 'pe', 'ri', 'so', 'ta', 'vu', 'we', 'xi', 'yo', 'za']

/** 100 to 280 letters, in words of which some are frequent and most are rare. */
function textOf(n: number): string {
  const length = 100 + Math.floor(180 * fractionOf(n, 4))
  let text = `post ${n}`
  for (let at = 5; text.length < length; at++) text += ` ${word(Math.floor(wordsKnown * fractionOf(n, at) ** 3))}`
  return text.slice(0, length)
}

function word(number: number): string {
  let word = ''
  for (let left = number + 1; left > 0; left = Math.floor(left / syllables.length))
    word += syllables[left % syllables.length]
  return word
}

/** From 0 to below 1, the same each time for the same two numbers. */
function fractionOf(n: number, use: number): number {
  let mixed = Math.imul(n ^ Math.imul(use, 0x9e37_79b1), 0x85eb_ca6b)
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2_ae35)
  return ((mixed ^ (mixed >>> 16)) >>> 0) / 0x1_0000_0000
}
