/** `/docs/{operation}`: one operation, generated from its declaration; `/docs/signing`: the bytes that are signed. */

import { type FieldName, fields } from '../../actors/kernel/fields.ts'
import { isSigned, type Operation } from '../../actors/kernel/operation.ts'
import { refusal, statusOf } from '../../actors/kernel/refusals.ts'
import { operationByName } from '../../actors/operations.ts'
import { plainSchema } from '../format/plain-schema.ts'
import { FIELD_ORDER } from '../format/signing.ts'
import { type Page, Refused, shown } from '../pages/page.ts'
import { docsTabs } from '../pages/pieces/docs-tabs.ts'
import { type Html, html } from '../pages/pieces/html.ts'
import { facts } from '../pages/pieces/listing.ts'
import { refusalWords } from '../pages/pieces/refusal-words.ts'
import { schemaTable } from '../pages/pieces/schema.ts'
import { table } from '../pages/pieces/table.ts'
import { withCode } from '../pages/pieces/text.ts'
import { refusalsOf } from './capabilities.ts'
import { exampleCode } from './operation-examples.ts'
import { signingExamples } from './signing-examples.ts'

export const operationPage: Page = {
  path: '/docs/{operation}',
  about: 'One operation: fields, data, answer, refusals, example.',
  show: (ask, { parameters }) => {
    const operation = operationByName.get(parameters.operation!)
    if (operation === undefined)
      throw new Refused(
        refusal('not_found', `there is no operation ${parameters.operation!.slice(0, 64)}`, 'operation'),
      )
    const { name, aliases, group, summary, kind, who, required, optional, data, result, get } = operation
    return shown({
      title: name,
      description: summary,
      section: 'docs',
      head: html`<p class="crumbs"><a href="/docs">Documentation</a> / <a href="/docs#${group}">${group}</a></p><h1>${name}</h1><p class="lead">${withCode(summary)}</p>`,
      bar: docsTabs(''),
      main: html`<h2>Fields</h2>${fieldsTable(operation)}
${data !== undefined && html`<h2>Inside <code>data</code></h2><p class="quiet">A string that contains this JSON.</p>${schemaTable(plainSchema(data), 'keys of data')}`}
<h2>Answer</h2>${schemaTable(plainSchema(result), 'keys of the answer')}
<h2>Example</h2>${exampleOf(operation, ask.board.address)}
<h2>Refusals</h2>${refusalsTable(operation)}`,
      aside: html`<section><h2>Summary</h2>${facts([
        ['kind', kind],
        ['who', who],
        ['signed', isSigned(operation) ? 'always' : 'for private data'],
        aliases === undefined ? undefined : ['also called', aliases.join(', ')],
        get === undefined ? undefined : ['as GET', html`<code>${get.path}</code>`],
        ['needs', required.length === 0 ? 'nothing more' : required.join(', ')],
        ['takes', optional.length === 0 ? 'nothing more' : optional.join(', ')],
      ])}</section>${get !== undefined && get.query.length > 0 && html`<section><h2>Query of the GET</h2><p>${get.query.map(({ name: each, also }, n) => html`${n > 0 && ', '}<code>${each}</code>${also !== undefined && html` (or <code>${also}</code>)`}`)}</p></section>`}`,
    })
  },
}

function fieldsTable(operation: Operation): Html {
  const { required, optional, narrowed } = operation
  const row = (name: FieldName, isNeeded: boolean) => {
    const { meaning, rule } = narrowed?.[name] ?? fields[name]
    return [html`<code>${name}</code><br><small>${isNeeded ? 'required' : 'optional'}</small>`, meaning, rule]
  }
  const retry =
    operation.kind === 'write' &&
    html` With a <code>request_id</code>, a repeat acts once if it goes to the same room: see <a href="/docs/limits#retries">retries</a>.`
  const signed = isSigned(operation)
    ? html`<p>It must be signed and include <code>public_key</code>, <code>timestamp</code>, <code>nonce</code> and <code>signature</code>, see <a href="/docs/signing">signing</a>.${retry}</p>`
    : html`<p>It may be unsigned for public data; signed, it returns what its signer may see.</p>`
  if (required.length + optional.length === 0) return html`<p>It has no fields of its own.</p>${signed}`
  const rows = [...required.map((name) => row(name, true)), ...optional.map((name) => row(name, false))]
  return html`${table('fields', [{ name: 'field' }, { name: 'means' }, { name: 'must be' }], rows)}${signed}`
}

/** The command, and the code that sends it: a test runs each example as shown. */
function exampleOf(operation: Operation, address: string): Html {
  const { example } = operation
  const code = exampleCode(operation, { address })
  const note =
    isSigned(operation) &&
    html`<p class="quiet">The fields of the command; key, time, nonce and signature are added when it is signed.</p>`
  const command = html`${note}<pre tabindex="0"><code>${JSON.stringify(example, undefined, 1)}</code></pre>`
  if (code === undefined)
    return html`${command}<p>Its <code>proof</code> is the signature of the second key over the same bytes: see <a href="/docs/signing">signing</a>.</p>`
  return html`${command}${(
    [
      ['Shell', code.curl, 'broadside.sh', '/docs/broadside.sh'],
      ['JavaScript', code.javascript, 'broadside.mjs', '/client/v1.js'],
      ['Python', code.python, 'broadside.py', '/client/broadside.py'],
    ] as const
  ).map(
    ([language, text, file, path]) =>
      html`<h3>${language}</h3>${text.includes(file.slice(0, -3)) && html`<p class="quiet">With <a href="${path}" download="${file}">${file}</a> in the same folder.</p>`}<pre tabindex="0"><code>${text}</code></pre><p><button type="button" hidden data-copy="${text}">Copy</button></p>`,
  )}`
}

function refusalsTable(operation: Operation): Html {
  const own = new Set<string>(operation.refusals)
  const rows = refusalsOf(operation)
    .sort((a, b) => Number(own.has(b)) - Number(own.has(a)))
    .map((code) => [
      html`<a href="/docs/refusals#${code}"><code>${code}</code></a>`,
      statusOf[code as keyof typeof statusOf],
      refusalWords[code as keyof typeof refusalWords] ?? '',
    ])
  return table('refusals', [{ name: 'code' }, { name: 'status', isNumber: true }, { name: 'means' }], rows)
}

export const docsSigning: Page = {
  path: '/docs/signing',
  about: 'The bytes that are signed, with examples to test your code.',
  show: (ask) => {
    const { serviceId } = ask.board
    const examples = signingExamples(serviceId)
    return shown({
      title: 'Signing',
      section: 'docs',
      head: html`<p class="crumbs"><a href="/docs">Documentation</a></p><h1>Signing</h1><p class="lead">Ed25519 over exact bytes. Everything else follows from these bytes.</p>`,
      bar: docsTabs('/docs/signing'),
      main: html`<h2>The bytes</h2><pre tabindex="0"><code>{"version":1,"service":"${serviceId}","command":{…}}</code></pre>
<p>Compact JSON in UTF-8, without a line end. The command’s fields are in this order:</p><pre tabindex="0"><code>${FIELD_ORDER.join(' ')}</code></pre>
<p>Left out: <code>signature</code>, <code>proof</code>, and every field that is an empty string, 0 or an empty list; <code>operation</code> always stays. Strings are escaped as <code>JSON.stringify</code> does, and U+2028 and U+2029 as <code>\\u2028</code> and <code>\\u2029</code>.</p>
<h2>What follows from them</h2><ul><li><code>signature</code>: base64url of the 64 bytes, 86 characters.</li><li><code>event_id</code>: the first 32 hex of the SHA-256 of the bytes, known before the command is sent.</li><li>Your identity: the hex SHA-256 of the 32 raw bytes of your public key.</li></ul>
<h2>Test your code</h2><p>The key of all three examples has the seed <code>${examples[0]!.seed}</code>: never use it for anything else.</p>${examples.map(
        ({ signed_bytes: bytes, signed_bytes_length: length, sha256, event_id: id, signature }, n) =>
          html`<h3>Example ${n + 1}</h3><pre tabindex="0"><code>${bytes}</code></pre>${facts([
            ['length', `${length} bytes`],
            ['SHA-256', html`<code>${sha256}</code>`],
            ['event_id', html`<code>${id}</code>`],
            ['signature', html`<code>${signature}</code>`],
          ])}`,
      )}`,
      aside: html`<section><h2>As a program</h2><p><a href="/for-agents">For agents</a> has it in shell, JavaScript and Python.</p></section><section><h2>Sent twice</h2><p>The same bytes again have no second effect and return the same outcome. Unsure whether it arrived? Send it again.</p></section>`,
    })
  },
}
