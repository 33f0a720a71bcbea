/**
 * The form for writing a post: a new thread, an inline reply, or a new version of a post. It has a preview by the board's own renderer,
 * attachments, and a draft that stays in this browser until the board has confirmed the post. A person without a key creates one by
 * posting.
 */
import {
  base64url,
  button,
  encoder,
  field,
  get,
  identityOf,
  isDisabled,
  kept,
  keyIn,
  keys,
  link,
  make,
  nameOf,
  read,
  rendered,
  Sealed,
  said,
  send,
  setDisabled,
  whoIs,
} from './board.js'

const [textBytesMax, fileBytesMax, filesMax] = document.getElementById('account').dataset.limits.split(' ').map(Number)
const nameBytesMax = 128

/** Input for a key file and the passphrase that it may need. `then` gets the key, which is not stored yet. */
export const keyFileField = (then, words = 'Use a key file ', name = 'Key file') => {
  const status = make('p', { class: 'problem', role: 'alert' })
  const passphrase = make('input', { type: 'password', autocomplete: 'current-password' })
  const asked = make('div', { class: 'actions', hidden: '' }, field('Passphrase of this file', passphrase))
  const file = make('input', { type: 'file', accept: '.json,.pem', 'aria-label': name })
  const open = async () => {
    status.textContent = ''
    if (file.files.length === 0) return
    try {
      await then(await keyIn(await file.files[0].text(), passphrase.value))
    } catch (error) {
      if (error instanceof Sealed) {
        asked.hidden = false
        passphrase.focus()
      }
      const isAsked = error instanceof Sealed && passphrase.value === ''
      status.textContent = isAsked ? '' : said(error)
    }
  }
  file.addEventListener('change', open)
  passphrase.addEventListener('keydown', (pressed) => {
    if (pressed.key !== 'Enter') return
    pressed.preventDefault()
    void open()
  })
  asked.append(button('Open', open))
  return make('div', {}, make('label', { class: 'file' }, words, file), asked, status)
}

/** What a person without a key decides when they post: whether the new key is saved, and with which passphrase. */
const keyFields = () => {
  const isSaved = make('input', { type: 'checkbox', checked: '' })
  const passphrase = make('input', { type: 'password', autocomplete: 'new-password', maxlength: '200' })
  const element = make(
    'div',
    { class: 'newcomer' },
    make(
      'p',
      {},
      'Posting makes a key in this browser. It is your account: it stays here, and no one else can restore it. ',
      link('/account', 'More about keys'),
    ),
    make('label', { class: 'check' }, isSaved, ' Save a copy of my key as a file'),
    make(
      'details',
      {},
      make('summary', {}, 'Passphrase, or a key that you have'),
      field('Passphrase for the file, if you want one', passphrase),
      keyFileField(useKey),
    ),
  )
  return { element, make: () => keys.make({ isSaved: isSaved.checked, passphrase: passphrase.value }) }
}

/** The name of a file as the board accepts it: no path, nothing invisible, and as much of it as fits before its ending. */
const acceptedName = (name) => {
  const clean = name.replace(/[/\\]/g, '_').replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu, '')
  const [ending = ''] = /\.[^.]{1,12}$/u.exec(clean) ?? []
  const stem = [...clean.slice(0, clean.length - ending.length)]
  while (encoder.encode(stem.join('') + ending).length > nameBytesMax) stem.pop()
  return stem.join('') + ending || 'attachment.bin'
}

const mebibytes = (bytes) => `${Number((bytes / 1_048_576).toFixed(2))} MiB`

/** Files to attach; each is uploaded once, when the post is sent. */
const fileList = (room, pick, say) => {
  const chosen = []
  const element = make('ul', { class: 'files', 'aria-label': 'files to attach' })
  const show = () =>
    element.replaceChildren(
      ...chosen.map((each, n) =>
        make(
          'li',
          {},
          `${each.name} `,
          button(
            'remove',
            () => {
              chosen.splice(n, 1)
              show()
              ;(element.querySelector('button') ?? pick).focus()
            },
            'plain',
          ),
        ),
      ),
    )
  const add = (files) => {
    const problems = []
    for (const file of files) {
      const name = acceptedName(file.name)
      if (file.size > fileBytesMax) problems.push(`${name} is too large: a file may have ${mebibytes(fileBytesMax)}.`)
      else if (file.size === 0) problems.push(`${name} is empty.`)
      else if (chosen.length === filesMax)
        problems.push(`${name} is one too many: a post may have ${filesMax === 1 ? '1 file' : `${filesMax} files`}.`)
      else chosen.push({ name, file })
    }
    if (problems.length > 0) say(problems.join(' '))
    show()
  }
  const upload = async (key) => {
    for (const each of chosen) {
      if (each.id !== undefined) continue
      say(`Uploading ${each.name}`)
      const data = base64url(new Uint8Array(await each.file.arrayBuffer()))
      const type = each.file.type === '' ? {} : { media_type: each.file.type }
      const { blob } = await send(key, { operation: 'blob.put', room, filename: each.name, ...type, data }, { say })
      each.id = blob.id
    }
    return chosen.map(({ id }) => id)
  }
  return {
    element,
    add,
    upload,
    /** Files that the post already has. */
    hold: (attachments = []) => {
      for (const { id, filename, gone } of attachments)
        if (gone === undefined) chosen.push({ name: filename ?? id.slice(0, 8), id })
      show()
    },
    clear: () => {
      chosen.length = 0
      show()
    },
  }
}

export const announceKey = () => document.dispatchEvent(new Event('key-changed'))
/** Takes up the key of a file. */
export const useKey = (key) => keys.load(key).then(announceKey)

/** The text as the board would show it. */
const previewInto = async (place, text, format) => {
  if (text.trim() === '') return place.replaceChildren(make('p', { class: 'quiet' }, 'Nothing to preview yet.'))
  place.replaceChildren(...(await rendered({ text, format })))
}

class Composer {
  constructor(options) {
    const { room, page = '', replyTo = '', edit } = options
    this.options = { ...options, page, replyTo }
    this.draft = edit === undefined ? `draft ${room} ${page} ${replyTo}` : `draft edit ${edit.event_id}`
    this.status = make('p', { role: 'status' })
    this.pick = make('input', { type: 'file', multiple: '', 'aria-label': 'Attach files' })
    this.files = fileList(room, this.pick, (words) => this.say(words))
    this.files.hold(edit?.attachments)
    this.isPosting = false
    this.isArranged = false
    /** The version that an edit replaces. */
    this.from = edit?.text
    this.makeFields()
    this.makeForm()
    this.restoreDraft()
  }

  /** Determines who writes: the key of this browser, or a key that posting will create. */
  async begin() {
    await this.identify()
    document.addEventListener('key-changed', () => {
      if (this.form.isConnected) void this.identify()
    })
    this.say(this.count() || this.restored)
    return this.form
  }

  /** Reads the key of this browser, which another tab may have made, changed or forgotten. @returns whether it is the same as before */
  async identify(maxAgeMs) {
    const before = this.key
    const key = await keys.get()
    const who = key === undefined ? undefined : await whoIs(key, maxAgeMs).catch(() => ({ id: key.id }))
    const isSame = this.isArranged && this.key?.publicKey === key?.publicKey && this.who?.handle === who?.handle
    this.key = key
    this.who = who
    if (!isSame) this.arrange()
    return before?.publicKey === key?.publicKey
  }

  say(words) {
    this.status.textContent = words
  }

  makeFields() {
    const { edit, replyTo } = this.options
    const id = `write-${this.draft.replaceAll(' ', '-')}`
    this.text = make('textarea', { id, rows: replyTo === '' ? '6' : '4', required: '' })
    this.format = make('input', { type: 'checkbox' })
    this.format.checked = (edit?.format ?? (kept.get('markdown') === true ? 'markdown' : 'text')) === 'markdown'
    this.handle = make('input', {
      autocomplete: 'off',
      autocapitalize: 'none',
      maxlength: '33',
      placeholder: 'such as ada',
    })
    this.addressee = make('input', {
      'aria-label': 'Addressed to',
      placeholder: 'To @handle',
      autocomplete: 'off',
      maxlength: '64',
    })
    const words = edit !== undefined ? 'Save' : replyTo === '' ? 'Post' : 'Reply'
    this.submit = make('button', { type: 'submit', class: 'strong' }, words)
    this.preview = make('div', { class: 'preview', hidden: '' })
    this.asWhom = make('span', { class: 'quiet' })
    this.needed = make('div', {})
  }

  makeForm() {
    const { room, page, replyTo, edit, onCancel, isPrivate } = this.options
    const isThread = replyTo === '' && edit === undefined
    const place = `${room}${page === '' ? '' : ` / ${page}`}`
    const label = this.options.label ?? (isThread ? `Write to ${place}` : 'Reply')
    const promise = make('span', { class: 'quiet' }, 'signed by your key; public texts can be proved')
    this.look = button('Preview', () => this.togglePreview())
    this.form = make(
      'form',
      { class: 'write' },
      make('label', { for: this.text.id, class: 'title' }, label),
      this.text,
      this.preview,
      this.files.element,
      this.needed,
      make(
        'div',
        { class: 'actions' },
        this.submit,
        this.look,
        make('label', { class: 'button plain' }, 'Attach files', this.pick),
        make('label', { class: 'check' }, this.format, ' Markdown'),
        ...(isThread ? [this.addressee] : []),
        ...(onCancel === undefined ? [] : [button('Cancel', () => this.cancel(), 'plain')]),
        this.asWhom,
        ...(isThread && !isPrivate ? [promise] : []),
      ),
      this.status,
    )
    this.form.text = this.text
    this.form.quote = (quoted) => this.quote(quoted)
    this.listen()
  }

  listen() {
    const { text } = this
    text.addEventListener('input', () => {
      this.keepDraft()
      const problem = this.count()
      if (!this.isPosting) this.say(problem)
    })
    text.addEventListener('paste', ({ clipboardData }) => this.files.add(clipboardData?.files ?? []))
    // Otherwise, the browser leaves the page to show the file.
    const take = (event) => {
      if (event.dataTransfer.types.includes('Files')) event.preventDefault()
    }
    this.form.addEventListener('dragover', take)
    this.form.addEventListener('drop', (event) => {
      take(event)
      this.files.add(event.dataTransfer.files)
    })
    text.addEventListener('keydown', ({ key: pressed, ctrlKey, metaKey }) => {
      if (pressed === 'Enter' && (ctrlKey || metaKey)) this.form.requestSubmit()
      if (pressed === 'Escape' && text.value === '') this.cancel()
    })
    addEventListener('pagehide', () => this.keepOwn())
    this.pick.addEventListener('change', () => {
      this.files.add(this.pick.files)
      this.pick.value = ''
    })
    this.format.addEventListener('change', () => {
      kept.set('markdown', this.format.checked)
      if (!this.preview.hidden) void this.showPreview()
    })
    this.form.addEventListener('submit', (submitted) => {
      submitted.preventDefault()
      if (text.value.trim() !== '' && !isDisabled(this.submit)) void this.post()
    })
  }

  /** Shows the draft. That of an edit is only offered if the post has been changed since: saving it would undo that. */
  restoreDraft() {
    const { text, draft, from } = this
    this.restored = ''
    const found = sessionStorage.getItem(draft) ?? localStorage.getItem(draft)
    sessionStorage.removeItem(draft)
    text.value = from ?? found ?? ''
    if (from === undefined || found === null) return
    const unsaved = JSON.parse(found)
    if (unsaved.text === from) return
    if (unsaved.from === from) {
      text.value = unsaved.text
      this.restored = 'These are your unsaved changes. Cancel discards them.'
      return
    }
    const restore = button('Restore your unsaved changes', () => {
      text.value = unsaved.text
      this.keepDraft()
      offer.remove()
      text.focus()
    })
    const words = 'This post was changed after you began to edit it. The text below is its newest version.'
    const offer = make('div', { class: 'note' }, make('p', {}, words), restore)
    text.before(offer)
  }

  /** What is stored as the draft: the text, for an edit with the version that it replaces. */
  draftNow() {
    const { text, from } = this
    return from === undefined ? text.value : JSON.stringify({ from, text: text.value })
  }

  keepDraft() {
    try {
      localStorage.setItem(this.draft, this.draftNow())
    } catch {
      // A browser that is out of space for drafts can still post.
    }
  }

  /** Another tab may have replaced the draft of both, or posted it. What is written here then stays with this tab, except in private rooms. */
  keepOwn() {
    const { text, draft, from = '', form, options } = this
    const now = this.draftNow()
    const isOwn = !options.isPrivate && form.isConnected && text.value !== from
    if (isOwn && localStorage.getItem(draft) !== now) sessionStorage.setItem(draft, now)
    else sessionStorage.removeItem(draft)
  }

  /** A reply that is closed can be continued later; a canceled edit is gone. */
  cancel() {
    if (this.from !== undefined) localStorage.removeItem(this.draft)
    this.options.onCancel?.()
  }

  formatName() {
    return this.format.checked ? 'markdown' : 'text'
  }

  togglePreview() {
    this.preview.hidden = !this.preview.hidden
    this.look.textContent = this.preview.hidden ? 'Preview' : 'Hide preview'
    return this.preview.hidden ? undefined : this.showPreview()
  }

  showPreview() {
    return previewInto(this.preview, this.text.value, this.formatName()).catch((error) =>
      this.say(`No preview: ${error.message}.`),
    )
  }

  /** Rebuilds the parts that depend on the key. */
  arrange() {
    const { key, who, needed } = this
    const hadFocus = needed.contains(document.activeElement)
    this.isArranged = true
    this.newcomer = key === undefined ? keyFields() : undefined
    const isNameless = this.options.isPrivate !== true && this.options.edit === undefined && who?.handle === undefined
    needed.replaceChildren(
      ...(isNameless ? [field('Your name here, if you want one: @', this.handle)] : []),
      ...(this.newcomer === undefined ? [] : [this.newcomer.element]),
    )
    this.asWhom.replaceChildren(...(who === undefined ? [] : ['as ', link('/account', nameOf(who))]))
    if (hadFocus) this.submit.focus()
  }

  /** Checks whether it can be posted now. @returns what is wrong with the text, or '' */
  count() {
    const bytes = encoder.encode(this.text.value).length
    const problem = bytes > textBytesMax ? `${bytes} bytes are too long: ${textBytesMax} are allowed.` : ''
    setDisabled(this.submit, this.isPosting || problem !== '')
    return problem
  }

  /** The requested handle, if it is available. */
  async wantedName() {
    const name = this.handle.value.trim().replace(/^@/, '').toLowerCase()
    if (name === '' || this.options.isPrivate === true || this.who?.handle !== undefined) return undefined
    if (!/^[a-z0-9][a-z0-9_-]{1,31}$/.test(name))
      throw new Error('a name has 2 to 32 of a-z 0-9 _ - and begins with a letter or digit')
    const { identities } = await get(`/api/identities?query=${name}&limit=50`)
    if (identities.some(({ handle: taken }) => taken === name))
      throw new Error(`the name @${name} is taken: choose another`)
    return name
  }

  /** Shows a version that was written elsewhere since the edit began, before it is replaced. */
  async checkVersion() {
    const { isPrivate, edit } = this.options
    const event_id = edit.event_id
    const asked = isPrivate ? read(this.key, { operation: 'event.get', event_id }) : get(`/api/events/${event_id}`)
    const { event } = await asked
    if (event.text === this.from) return
    this.from = event.text
    await previewInto(this.preview, event.text ?? '', event.format)
    this.preview.hidden = false
    this.look.textContent = 'Hide preview'
    throw new Error('this post was changed elsewhere, to the version shown above. Save again to replace that version')
  }

  /** The fields of the command other than its text. */
  fieldsOf(text, name, to, attachments) {
    const { room, page, replyTo, edit } = this.options
    const format = this.formatName()
    const data = {
      schema: 1,
      ...(format === 'markdown' || edit !== undefined ? { format } : {}),
      ...(edit === undefined ? {} : { supersedes: edit.event_id }),
    }
    return {
      operation: 'post',
      ...{ room, page, text, reply_to: replyTo, to: edit?.to_id ?? to, attachments, handle: name },
      ...(Object.keys(data).length === 1 ? {} : { data }),
    }
  }

  async send() {
    const written = this.text.value
    // A person without a key who has one by now posts with it: it was made for a post in another tab.
    const isNewcomer = this.key === undefined
    if (!(await this.identify()) && !isNewcomer)
      throw new Error('the key of this browser was changed in another tab: see below who you are now, then post again')
    const name = await this.wantedName()
    if (this.from !== undefined) await this.checkVersion()
    const to = await identityOf(this.addressee.value.trim())
    if (this.key === undefined) {
      await this.newcomer.make()
      await this.identify()
      announceKey()
    }
    const attachments = await this.files.upload(this.key)
    this.say('Posting')
    const fields = this.fieldsOf(written, name, to, attachments)
    const done = await send(this.key, fields, { say: (words) => this.say(words) })
    if (this.text.value === written) {
      this.text.value = ''
      // The preview is of what was posted.
      if (!this.preview.hidden) void this.togglePreview()
    }
    this.addressee.value = ''
    this.files.clear()
    if (this.text.value === '') localStorage.removeItem(this.draft)
    if (name !== undefined) {
      await this.identify(0)
      announceKey()
    }
    return done
  }

  async post() {
    this.isPosting = true
    this.count()
    this.say('Posting')
    try {
      const done = await this.send()
      this.tell(done)
      await this.show(done)
    } catch (error) {
      this.say(`${this.from === undefined ? 'Not posted' : 'Not saved'}: ${error.message.replace(/\.$/, '')}.`)
    } finally {
      this.isPosting = false
      this.count()
    }
  }

  /** Whether the page can show it or not, it is posted, and the status links to it. */
  async show(done) {
    try {
      await this.options.onPosted?.(done)
    } catch {}
  }

  /** A public post has a page and a proof. */
  tell({ receipt, event_id: id, handle_not_applied: why }) {
    const done = this.options.edit === undefined ? 'Posted' : 'Saved'
    const isPublic = receipt.log_index !== undefined
    const ways = [': ', link(`/e/${id}`, 'see it'), '. ', link(`/e/${id}/proof`, 'Its proof')]
    this.status.replaceChildren(done, ...(isPublic ? ways : []), '.')
    if (why === undefined) return
    const reason = why.replaceAll('_', ' ')
    this.status.append(
      ` The name was not registered (${reason}): choose another at `,
      link('/account', 'your key'),
      '.',
    )
  }

  quote(quoted) {
    this.format.checked = true
    const lines = quoted.split('\n').map((line) => `> ${line}`)
    const before = this.text.value === '' ? '' : `${this.text.value}\n\n`
    this.text.value = `${before}${lines.join('\n')}\n\n`
    this.keepDraft()
  }
}

/**
 * @param {object} options `room`; `page`, `replyTo`; `edit`: the event that gets a new version; `isPrivate`; `label`; `onPosted(data)`,
 * `onCancel` if it can be closed
 * @returns {Promise<HTMLFormElement>} with `text`, its field, and `quote(words)`
 */
export const composer = (options) => new Composer(options).begin()
