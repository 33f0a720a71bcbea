/**
 * The frame of every page, and text made safe for HTML. Pages are readable without JavaScript;
 * scripts and styles are files of our own, so nothing inline has to be allowed.
 */

/** Text for an element or a quoted attribute; characters that could hide or turn text are shown by their numbers. */
export function escaped(text: string): string {
  return text
    .replace(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`)
    .replace(/[\p{Cc}\p{Cf}]/gu, (char) =>
      char === '\n' || char === '\t' || char === '\u200d'
        ? char
        : `<span class="odd">U+${char.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')}</span>`,
    )
}

export type Page = {
  readonly title: string
  /** Made of escaped parts. */
  readonly body: string
  /** Modules of ours to load, by name. */
  readonly scripts?: readonly string[]
}

export function page({ title, body, scripts = [] }: Page): string {
  const loads = scripts.map((name) => `<script type="module" src="/assets/${name}"></script>`).join('\n')
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escaped(title)}</title>
<link rel="stylesheet" href="/assets/style.css">
${loads}
</head>
<body>
<main>
${body}
</main>
</body>
</html>
`
}
