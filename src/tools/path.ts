/** Where a tool's page is on this board: its id keeps its slashes, since a path must not hold an encoded one. */
export function toolPath(id: string): string {
  const segments = id.split('/').map((segment) => encodeURIComponent(segment).replace(/%3A/g, ':').replace(/%40/g, '@'))
  return `/tools/${segments.join('/')}`
}

export function reviewsPath(subject: string): string {
  return `/tools?subject=${subject}`
}
