// Reads a whole document from the hub; long ones come in parts.

/** {document, version, text}: the latest version, or the requested one. */
export async function readWhole(client, id, version = null) {
  const first = await client.call("read_document", { id, numbers: false, ...(version && { version }) });
  const parts = [first.text];
  for (let last = first.last; last < first.lines; ) {
    const args = { id, version: first.version, numbers: false, first: last + 1 };
    const part = await client.call("read_document", args);
    parts.push(part.text);
    last = part.last;
  }
  return { document: first.document, version: first.version, text: parts.join("\n") };
}

/** The same, with its version's {author, at, note, base}. */
export async function readWithAuthor(client, id, version = null) {
  const whole = await readWhole(client, id, version);
  const { versions } = await client.call("document_history", { id, before: whole.version + 1, limit: 1 });
  return { ...whole, made: versions[0] };
}
