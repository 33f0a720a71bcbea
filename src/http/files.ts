/** How users' files are served: their name and type in headers, and the byte range that a reader requests. */

/** Bytes start..end-1. */
export type ByteRange = { readonly start: number; readonly end: number }

/**
 * Types that contain no script and that no plugin displays. All others are a download of bytes: the true type is in the
 * blob's record.
 */
const harmless =
  /^(text\/plain|text\/markdown|text\/csv|application\/json|application\/pdf|application\/zip|application\/gzip|audio\/[a-z0-9.+-]+|video\/[a-z0-9.+-]+)(;|$)/i

export function servedType(file: { readonly media_type: string; readonly is_image: boolean }): string {
  return file.is_image || harmless.test(file.media_type) ? file.media_type : 'application/octet-stream'
}

/** RFC 6266: the name in ASCII for old readers, and all of it in UTF-8 (RFC 8187) where that differs. */
export function contentDisposition(kind: 'inline' | 'attachment', filename: string): string {
  const plain = filename.replace(/[^\x20-\x7e]|["\\%]/g, '_')
  const whole = encodeURIComponent(filename).replace(
    /['()*]/g,
    (each) => `%${each.charCodeAt(0).toString(16).toUpperCase()}`,
  )
  return `${kind}; filename="${plain}"; filename*=UTF-8''${whole}`
}

/**
 * The one part that a Range header requests (RFC 9110, 14). Undefined: serve all, as for a header that is not a range
 * of bytes or that names several parts. 'outside': the file has nothing of it.
 */
export function rangeOf(header: string | undefined, size: number): ByteRange | 'outside' | undefined {
  const found = header === undefined ? null : /^bytes=[ \t]*(?:(\d+)-(\d*)|-(\d+))[ \t]*$/i.exec(header)
  if (found === null) return undefined
  const [, first, last, suffix] = found
  if (suffix !== undefined) {
    const length = Math.min(Number(suffix), size)
    return length === 0 ? 'outside' : { start: size - length, end: size }
  }
  const start = Number(first)
  if (last !== '' && Number(last) < start) return undefined
  if (start >= size) return 'outside'
  return { start, end: last === '' ? size : Math.min(Number(last) + 1, size) }
}
