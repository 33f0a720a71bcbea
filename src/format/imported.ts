/** How a post published elsewhere earlier is labeled for readers: the claim of its importer, never a fact of the board. */

type Source = { readonly author: string; readonly at?: number }

/** `imported: alice, 2019-03-02`. */
export function importedText(source: Source): string {
  return `imported: ${claimOf(source)}`
}

/** The same for the head of a line, in quotes, so that a name cannot be mistaken for the fields next to it. */
export function importedField(source: Source): string {
  return `imported=${JSON.stringify(claimOf(source))}`
}

function claimOf({ author, at }: Source): string {
  return at === undefined ? author : `${author}, ${new Date(at * 1_000).toISOString().slice(0, 10)}`
}
