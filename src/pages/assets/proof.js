/**
 * Verifies a proof in the reader's own browser, using only WebCrypto, and draws its path.
 *
 * The proof and the event are fetched from the board; nothing in the answer is believed unless hashes and signatures confirm it. The log's
 * key is pinned: the first one seen for a log is stored in this browser, and a different one later is reported as broken.
 */

const encoder = new TextEncoder()

/** @param {Uint8Array} bytes */
const sha256 = async (bytes) => new Uint8Array(await crypto.subtle.digest('SHA-256', bytes))

/** @param {...Uint8Array} parts */
const join = (...parts) => {
  const all = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0))
  let at = 0
  for (const part of parts) {
    all.set(part, at)
    at += part.length
  }
  return all
}

/** @param {Uint8Array} bytes */
const hex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
/** @param {string} text */
const fromHex = (text) => Uint8Array.from(text.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16))
/** @param {string} text standard or URL-safe base64 */
const fromBase64 = (text) =>
  Uint8Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), (char) => char.charCodeAt(0))

/** @param {Uint8Array} key @param {Uint8Array} signature @param {Uint8Array} message */
const verifies = async (key, signature, message) => {
  const imported = await crypto.subtle.importKey('raw', key, 'Ed25519', false, ['verify'])
  return crypto.subtle.verify('Ed25519', imported, signature, message)
}

/** What is wrong, worded for the reader. */
class Broken extends Error {}
/** @param {boolean} holds @param {string} otherwise */
const must = (holds, otherwise) => {
  if (!holds) throw new Broken(otherwise)
}

/** Lines of an entry by name. @param {string} text */
const linesOf = (text) =>
  new Map(text.split('\n').map((line) => [line.split(' ', 1)[0], line.slice(line.indexOf(' ') + 1)]))

/** Each step returns what it found, or throws Broken. A step with nothing to check returns null. */
const steps = {
  async signature({ event, proof }) {
    if (proof.signed_payload === undefined) return null
    const key = fromBase64(event.author.public_key)
    const payload = JSON.parse(proof.signed_payload)
    must(payload.command.public_key === event.author.public_key, 'the signed bytes name a different key than the page')
    const good = await verifies(key, fromBase64(event.signature), encoder.encode(proof.signed_payload))
    must(good, 'the signature does not match the bytes and the key')
    must(payload.command.text === event.text, 'the signed bytes contain a different text than the page')
    const same = hex(await sha256(key)) === event.author.id
    return `signed with the key ${event.author.public_key}${same ? '' : ', to which this identity has rotated (see the rotation entries of the log)'}`
  },
  async entry({ proof, shown }) {
    const lines = linesOf(new TextDecoder().decode(fromBase64(proof.entry)))
    must(lines.get('event') === shown, 'the entry is about another post')
    if (proof.signed_payload === undefined)
      return `entry of post ${shown}; its text is gone, so it cannot be hashed again`
    const command = hex(await sha256(encoder.encode(proof.signed_payload)))
    must(lines.get('command') === command, 'the entry names a different hash than that of the signed bytes')
    must(command.slice(0, 32) === shown, 'the id is not the beginning of the hash')
    return `command ${command}`
  },
  async leaf({ proof, drawn }) {
    const leaf = await sha256(join(Uint8Array.of(0), fromBase64(proof.entry)))
    drawn.computed.push(leaf)
    must(hex(leaf) === proof.leaf_hash, 'the entry hashes to another leaf')
    return `leaf ${hex(leaf)}`
  },
  // RFC 9162 section 2.1.3.2, in numbers that are exact up to 2^53.
  async path({ proof, drawn }) {
    let index = proof.leaf_index
    let last = proof.tree_size - 1
    must(index <= last, 'the leaf is not in a log of that size')
    let hash = drawn.computed[0]
    for (const neighbour of proof.inclusion_path.map(fromHex)) {
      must(last > 0, 'the path is longer than the height of the log')
      const isLeft = index % 2 === 1 || index === last
      drawn.steps.push({ neighbour, isLeft })
      hash = await sha256(isLeft ? join(Uint8Array.of(1), neighbour, hash) : join(Uint8Array.of(1), hash, neighbour))
      drawn.computed.push(hash)
      if (isLeft) {
        while (index % 2 === 0 && index > 0) {
          index /= 2
          last = Math.floor(last / 2)
        }
      }
      index = Math.floor(index / 2)
      last = Math.floor(last / 2)
    }
    must(last === 0, 'the path is shorter than the height of the log')
    must(hex(hash) === proof.root_hash, 'the path leads to another root')
    return `${proof.inclusion_path.length} hashes up to root ${hex(hash)}`
  },
  async checkpoint({ proof, drawn }) {
    const split = proof.checkpoint.lastIndexOf('\n\n')
    const text = proof.checkpoint.slice(0, split + 1)
    const [origin, size, root] = text.split('\n')
    must(size === String(proof.tree_size), 'the checkpoint has a different size')
    must(hex(fromBase64(root)) === hex(drawn.computed.at(-1)), 'the checkpoint states a different root')
    const { key, id, vkey, isNew } = pinned(origin, proof.log.vkey)
    const lines = proof.checkpoint
      .slice(split + 2)
      .trimEnd()
      .split('\n')
    const own = lines
      .map((line) => line.split(' '))
      .find(([, name, text]) => name === origin && hex(fromBase64(text).subarray(0, 4)) === id)
    must(own !== undefined, 'the log’s key has not signed this checkpoint')
    must(
      await verifies(key, fromBase64(own[2]).subarray(4), encoder.encode(text)),
      'the signature of the log is invalid',
    )
    const others = lines.length - 1
    const witnesses =
      others === 0 ? '' : `; ${others} further ${others === 1 ? 'line' : 'lines'} of witnesses not checked here`
    return `signed by ${vkey}${isNew ? ' (seen for the first time in this browser, and remembered)' : ' (the key this browser remembers)'}${witnesses}`
  },
}

/** The pinned key of a log; the first one seen is stored. @param {string} origin @param {string} vkey */
function pinned(origin, vkey) {
  const name = `broadside log ${origin}`
  let kept = null
  try {
    kept = localStorage.getItem(name)
    if (kept === null) localStorage.setItem(name, vkey)
  } catch {
    // Without storage, trust the key that the board gives, as on a first visit.
  }
  must(
    kept === null || kept === vkey,
    'the board names a different key for its log than when this browser first saw it',
  )
  const [, id, material] = /^[^+]*\+([0-9a-f]{8})\+(.*)$/.exec(vkey) ?? []
  must(material !== undefined, 'the key of the log cannot be read')
  const bytes = fromBase64(material)
  must(bytes[0] === 1 && bytes.length === 33, 'the key of the log is of an unknown kind')
  return { key: bytes.subarray(1), id, vkey, isNew: kept === null }
}

const svgSpace = 'http://www.w3.org/2000/svg'
/** @param {string} name @param {Record<string, string | number>} attributes @param {string} [text] */
function shape(name, attributes, text) {
  const made = document.createElementNS(svgSpace, name)
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value))
  if (text !== undefined) made.textContent = text
  return made
}

/**
 * Draws the leaf at the bottom and the root at the top; a sibling is on the side on which it is hashed. As wide as a phone, so letters keep
 * their size there.
 */
function draw({ computed, steps }, holds) {
  const width = 352
  const row = 64
  const height = row * (steps.length + 1)
  const svg = shape('svg', {
    viewBox: `0 0 ${width} ${height}`,
    role: 'img',
    'aria-label': 'path from the leaf to the root',
    class: holds ? 'path' : 'path bad',
  })
  const place = (step, isLeft) => ({ x: isLeft ? 86 : 266, y: height - row * step - row / 2 })
  const box = ({ x, y }, hash, kind, label) => {
    svg.append(shape('rect', { x: x - 83, y: y - 18, width: 166, height: 36, rx: 6, class: `node ${kind}` }))
    svg.append(
      shape('text', { x, y: y - 2 }, `${hex(hash).slice(0, 20)}…`),
      shape('text', { x, y: y + 13, class: 'label' }, label),
    )
  }
  const ownSide = (n) => (n < steps.length ? !steps[n].isLeft : true)
  const boxes = []
  for (const [n, hash] of computed.entries()) {
    const at = n === steps.length ? { x: width / 2, y: row / 2 } : place(n, ownSide(n))
    boxes.push([at, hash, 'ours', n === 0 ? 'this post' : n === steps.length ? 'root' : `computed, level ${n}`])
    if (n >= steps.length) continue
    const up = n + 1 === steps.length ? { x: width / 2, y: row / 2 } : place(n + 1, ownSide(n + 1))
    const beside = place(n, steps[n].isLeft)
    for (const from of [at, beside])
      svg.append(shape('line', { x1: from.x, y1: from.y - 18, x2: up.x, y2: up.y + 18, class: 'edge' }))
    boxes.push([beside, steps[n].neighbour, '', 'from the log'])
  }
  for (const each of boxes) box(...each)
  document.getElementById('tree').replaceChildren(svg)
}

async function check() {
  const verdict = document.getElementById('verdict')
  const id = verdict.dataset.event
  const get = async (path) => {
    const { ok, data, error } = await (await fetch(path)).json()
    if (!ok) throw new Broken(error.message)
    return data.event ?? data
  }
  const event = await get(`/api/events/${id}`)
  // For an edited post, the newest version is shown: its text, signature, and leaf.
  const shown = event.version_id ?? id
  const proof = await get(`/api/log/proof?message=${shown}`)
  const drawn = { computed: [], steps: [] }
  let broken = 0
  let unchecked = 0
  for (const [name, step] of Object.entries(steps)) {
    const item = document.getElementById(`step-${name}`)
    try {
      const found = await step({ proof, event, shown, drawn })
      if (found === null) unchecked++
      item.className = found === null ? 'none' : 'good'
      item.querySelector('.found').textContent =
        found ?? 'the text is gone, and with it the signed bytes: nothing to check here'
    } catch (error) {
      broken++
      item.className = 'bad'
      item.querySelector('.found').textContent =
        error instanceof Broken ? error.message : `this browser could not check it: ${error.message}`
    }
  }
  verdict.className = broken === 0 ? 'good' : 'bad'
  verdict.textContent =
    broken > 0
      ? 'NOT proved: a step below is broken.'
      : unchecked === 0
        ? 'Proved: your browser checked every step.'
        : 'Proved: a post with this id is in the log. The signature of its author cannot be checked: the text is gone.'
  draw(drawn, broken === 0)
}

check().catch((error) => {
  const verdict = document.getElementById('verdict')
  verdict.className = 'bad'
  verdict.textContent = `NOT proved: ${error.message}`
})
